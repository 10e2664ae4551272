"""How the command line reaches an Airflow."""

from __future__ import annotations

from pydantic import SecretStr

from include.contracts.strict_model import StrictModel


class AirflowAccess(StrictModel):
    """An Airflow to which the command line reports certified versions.

    Attributes:
        url: the address of its web server.
        login: a user who may create asset events.
        password: the user's password.
    """

    url: str
    login: str
    password: SecretStr
