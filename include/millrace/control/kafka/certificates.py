"""The certificates and the key of a Kafka client, from PEM files as Java reads them."""

from __future__ import annotations

import re
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
from cryptography.x509 import load_pem_x509_certificate

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


def java_certificates(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the Java client's settings with the content of the files that librdkafka's settings name.

    Executors thus need no file. Java 17 reads few kinds of keys and few encryptions, so the key is in PKCS #8, and not
    encrypted: the settings are as secret as it is.

    Raises:
        ValueError: a file cannot be read, or has no certificate or key, or the key is of another certificate.
    """
    settings: dict[str, str] = {}
    if "ssl.ca.location" in conf:
        authorities = _certificates(conf, "ssl.ca.location")
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    if "ssl.certificate.location" in conf:
        chain = _certificates(conf, "ssl.certificate.location")
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": chain,
            "ssl.keystore.key": _key(conf, chain),
        }
    return settings


def _certificates(conf: Mapping[str, str], name: str) -> str:
    # Those of authorities are not parsed: lists of public ones have some that this parser warns of.
    found = _CERTIFICATE.findall(_content(conf, name))
    if not found:
        raise ValueError(f"{name} {conf[name]} has no certificate")
    return b"\n".join(found).decode()


def _key(conf: Mapping[str, str], chain: str) -> str:
    file, password = conf["ssl.key.location"], conf.get("ssl.key.password")
    content = _content(conf, "ssl.key.location")
    try:
        key = load_pem_private_key(content, password.encode() if password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"ssl.key.location {file} has no key: {error}") from error
    named = f"ssl.certificate.location {conf['ssl.certificate.location']}"
    try:
        certificate = load_pem_x509_certificate(chain.encode())
    except ValueError as error:
        raise ValueError(f"{named} has no certificate: {error}") from error
    public = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*public) != certificate.public_key().public_bytes(*public):
        raise ValueError(f"ssl.key.location {file} is not the key of the first certificate in {named}")
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _content(conf: Mapping[str, str], name: str) -> bytes:
    try:
        return Path(conf[name]).read_bytes()
    except OSError as error:
        raise ValueError(f"{name} {conf[name]}: {error.strerror}") from error
