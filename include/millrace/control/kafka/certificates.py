"""The certificates and the key of a Kafka client, from PEM files as Java reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import Certificate, load_pem_x509_certificates


def java_certificates(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the Java client's settings with the content of the files that librdkafka's settings name.

    Executors thus need no file. Java 17 reads few kinds of keys and few encryptions, so the key is in PKCS #8, and not
    encrypted: the settings are as secret as it is.

    Raises:
        ValueError: a file cannot be read, or has no certificate or key, or the key is of another certificate.
    """
    settings: dict[str, str] = {}
    if "ssl.ca.location" in conf:
        authorities = _pem(_certificates(conf, "ssl.ca.location"))
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    if "ssl.certificate.location" in conf:
        chain = _certificates(conf, "ssl.certificate.location")
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _pem(chain),
            "ssl.keystore.key": _key(conf, chain[0]),
        }
    return settings


def _certificates(conf: Mapping[str, str], name: str) -> list[Certificate]:
    try:
        return load_pem_x509_certificates(_content(conf, name))
    except ValueError as error:
        raise ValueError(f"{name} {conf[name]} has no certificates: {error}") from error


def _key(conf: Mapping[str, str], certificate: Certificate) -> str:
    file, password = conf["ssl.key.location"], conf.get("ssl.key.password")
    content = _content(conf, "ssl.key.location")
    try:
        key = load_pem_private_key(content, password.encode() if password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"ssl.key.location {file} has no key: {error}") from error
    public = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*public) != certificate.public_key().public_bytes(*public):
        named = f"ssl.certificate.location {conf['ssl.certificate.location']}"
        raise ValueError(f"ssl.key.location {file} is not the key of the first certificate in {named}")
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _content(conf: Mapping[str, str], name: str) -> bytes:
    try:
        return Path(conf[name]).read_bytes()
    except OSError as error:
        raise ValueError(f"{name} {conf[name]}: {error.strerror}") from error


def _pem(certificates: list[Certificate]) -> str:
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
