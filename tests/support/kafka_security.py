"""Listeners of a Kafka broker that ask who connects, with the certificates and users for them, made for one run."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

USER, PASSWORD, KEY_PASSWORD = "ann", "in the clear nowhere", "of the key of ann"
ODD_PASSWORD = 'a " and a \\ in no output'
"""A password for SCRAM with what must be escaped in JAAS."""


@dataclass(frozen=True)
class Authority:
    """A certificate authority."""

    certificate: x509.Certificate
    key: Key

    @classmethod
    def new(cls, name: str, parent: Authority | None = None) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(
            _certificate(
                name,
                key,
                parent.certificate.subject if parent else _name(name),
                parent.key if parent else key,
                is_authority=True,
            ),
            key,
        )

    def issue(self, name: str, key: Key) -> x509.Certificate:
        """Return a certificate for a server on loopback, or for a client."""
        return _certificate(name, key, self.certificate.subject, self.key)


@dataclass(frozen=True)
class SecureListeners:
    """The listeners of a broker for TLS with client certificates, and for passwords over TLS.

    Attributes:
        folder: the folder of the PEM files that `make_files` writes.
        tls: the port for clients with a certificate.
        sasl: the port for clients with a password.
    """

    folder: Path
    tls: int
    sasl: int

    def make_files(self) -> None:
        """Make the certificates of the broker, of its client and of an authority that has signed none of them."""
        self.folder.mkdir(mode=0o700)
        root, stranger = Authority.new("root"), Authority.new("stranger")
        between = Authority.new("between", root)
        broker_key = ec.generate_private_key(ec.SECP256R1())
        client_key = rsa.generate_private_key(65537, 2048)
        self._write("root.pem", root.certificate)
        self._write("stranger.pem", stranger.certificate)
        self._write("broker.pem", broker_key, root.issue("broker", broker_key), root.certificate)
        self._write("client.pem", between.issue(USER, client_key), between.certificate)
        encrypted = BestAvailableEncryption(KEY_PASSWORD.encode())
        # What `openssl genrsa -aes256 -traditional` writes: of this, Java reads neither the key nor the encryption.
        (self.folder / "client.key").write_bytes(
            client_key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, encrypted)
        )

    def broker_conf(self, port: int, controller_port: int) -> dict[str, str]:
        """Return the settings of a broker that has these listeners and, for inter-broker requests, a plain one."""
        addresses = {"PLAINTEXT": port, "SSL": self.tls, "SASL_SSL": self.sasl}
        advertised = ",".join(f"{name}://127.0.0.1:{at}" for name, at in addresses.items())
        plain, scram = (
            "org.apache.kafka.common.security.plain.PlainLoginModule",
            "org.apache.kafka.common.security.scram.ScramLoginModule",
        )
        return {
            "listeners": f"{advertised},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "root.pem"),
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{plain} required user_{USER}="{PASSWORD}";',
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{scram} required;",
        }  # fmt: skip

    def create_user(self, address: str) -> None:
        """Create the user for SCRAM at the plain listener."""
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(USER, scram, ODD_PASSWORD.encode())
        admin = AdminClient({"bootstrap.servers": address})
        for done in admin.alter_user_scram_credentials([change]).values():
            done.result(20)

    def client_conf(self, mechanism: str, authority: str = "root.pem") -> dict[str, str]:
        """Return the settings of a client with a certificate (`mTLS`), or a password (`PLAIN`, `SCRAM-SHA-512`)."""
        trust = {"ssl.ca.location": str(self.folder / authority)}
        if mechanism == "mTLS":
            return {
                "bootstrap.servers": f"127.0.0.1:{self.tls}",
                "security.protocol": "SSL",
                "ssl.certificate.location": str(self.folder / "client.pem"),
                "ssl.key.location": str(self.folder / "client.key"),
                "ssl.key.password": KEY_PASSWORD,
                **trust,
            }
        return {
            "bootstrap.servers": f"127.0.0.1:{self.sasl}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": USER,
            "sasl.password": PASSWORD if mechanism == "PLAIN" else ODD_PASSWORD,
            **trust,
        }

    def _write(self, name: str, *parts: Key | x509.Certificate) -> None:
        (self.folder / name).write_bytes(b"".join(map(_pem, parts)))


def _pem(part: Key | x509.Certificate) -> bytes:
    if isinstance(part, x509.Certificate):
        return part.public_bytes(Encoding.PEM)
    return part.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(
    name: str, key: Key, issuer: x509.Name, issuer_key: Key, *, is_authority: bool = False
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
