"""People who log in to an API server of a test."""

from __future__ import annotations

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from fastapi.testclient import TestClient


def login(server: TestClient, user: str) -> dict[str, str]:
    """Return the headers of requests of `user`, who has logged in."""
    body = {"username": user, "password": SimpleAuthManager.get_passwords()[user]}
    return {"Authorization": f"Bearer {server.post('/auth/token', json=body).json()['access_token']}"}
