"""People who log in to an API server of a test."""

from __future__ import annotations

from functools import cache

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from fastapi import FastAPI
from fastapi.testclient import TestClient


def login(server: TestClient, user: str) -> dict[str, str]:
    """Return the headers of requests of `user`, who has logged in."""
    return {"Authorization": f"Bearer {_token(server.app, user)}"}  # type: ignore[arg-type]


@cache
def _token(app: FastAPI, user: str) -> str:
    body = {"username": user, "password": SimpleAuthManager.get_passwords()[user]}
    return str(TestClient(app).post("/auth/token", json=body).json()["access_token"])
