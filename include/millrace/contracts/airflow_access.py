"""How an Airflow is reached."""

from __future__ import annotations

from typing import Self

from pydantic import SecretStr, model_validator

from millrace.contracts.strict_model import StrictModel


class AirflowAccess(StrictModel):
    """An Airflow with a public API, and who asks there: a user with a password, or a token.

    Attributes:
        url: the address of its web server.
        login: a user with the rights for what is asked.
        password: the user's password.
        token: a token of its API, in place of user and password.
    """

    url: str
    login: str = ""
    password: SecretStr = SecretStr("")
    token: SecretStr = SecretStr("")

    @model_validator(mode="after")
    def _names_a_user_or_a_token(self) -> Self:
        if bool(self.token.get_secret_value()) == bool(self.login):
            raise ValueError('say who asks: either "login" and "password", or "token"')
        return self
