"""What LAKEHOUSE_KAFKA says of a cluster reaches both clients, librdkafka and Java's, or is refused by its name."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates

from millrace.control.kafka.cluster import KafkaCluster
from millrace.errors import SpecError
from tests.support.kafka_security import KEY_PASSWORD, SecureListeners

BROKERS = {"bootstrap.servers": "broker:9092"}
TLS = {**BROKERS, "security.protocol": "SSL"}
PASSWORD = {
    **BROKERS,
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "ann",
    "sasl.password": 'one " two \\ three\n',
}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> SecureListeners:
    """The certificates of a client, and of the broker that it connects to."""
    listeners = SecureListeners(tmp_path_factory.mktemp("certificates") / "pem", 9093, 9094)
    listeners.make_files()
    return listeners


def java_conf(conf: dict[str, str]) -> dict[str, str]:
    return dict(KafkaCluster.of("main", {"main": conf}).java_conf)


def test_a_password_reaches_java_as_it_is() -> None:
    assert java_conf({**PASSWORD, "client.rack": "zone-a"}) == {
        **BROKERS,
        "client.rack": "zone-a",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        r'username="ann" password="one \" two \\ three\n";',
    }
    plain = java_conf({**PASSWORD, "sasl.mechanism": "PLAIN"})["sasl.jaas.config"]
    assert plain.startswith("org.apache.kafka.common.security.plain.PlainLoginModule required")


def test_a_certificate_reaches_java_with_its_chain_and_a_key_that_java_reads(secure: SecureListeners) -> None:
    conf = secure.client_conf("mTLS")
    java = java_conf(conf)
    chain = load_pem_x509_certificates(java["ssl.keystore.certificate.chain"].encode())
    key = load_pem_private_key(java["ssl.keystore.key"].encode(), None)
    assert java["ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----"), "PKCS #8, not encrypted"
    assert (len(chain), chain[0].public_key()) == (2, key.public_key())
    assert java["ssl.truststore.certificates"] == (secure.folder / "root.pem").read_text().strip()
    assert {name: value for name, value in java.items() if "BEGIN" not in value} == {
        "bootstrap.servers": "127.0.0.1:9093",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.type": "PEM",
    }


@pytest.mark.parametrize(
    ("conf", "cause", "way_out"),
    [
        (
            {**BROKERS, "socket.keepalive.enable": "true"},
            "has socket.keepalive.enable, which cannot reach",
            "Remove it",
        ),
        ({**TLS, "enable.ssl.certificate.verification": "false"}, "enable.ssl.certificate.verification", "Remove it"),
        ({**TLS, "ssl.endpoint.identification.algorithm": "none"}, "could pose as a broker", "Remove it"),
        ({**TLS, "ssl.key.pem": "a key"}, "has ssl.key.pem", "Write ssl.key.location"),
        ({**TLS, "ssl.keystore.location": "c.p12"}, "has ssl.keystore.location", "Write ssl.certificate.location"),
        ({**TLS, "ssl.key.location": "k.pem"}, "but no ssl.certificate.location", "Add ssl.certificate.location"),
        ({**TLS, "ssl.ca.location": "/nowhere.pem"}, "ssl.ca.location /nowhere.pem: No such file", "can read"),
        ({**TLS, "security.protocol": "TLS"}, "has security.protocol TLS", "Write one of PLAINTEXT, SSL"),
        ({**BROKERS, "ssl.ca.location": "ca.pem"}, "which security.protocol PLAINTEXT does not use", "with SSL"),
        ({**TLS, "sasl.password": "s3cret"}, "has sasl.password, which security.protocol SSL", "with SASL"),
        ({**PASSWORD, "sasl.mechanism": "OAUTHBEARER"}, "has sasl.mechanism OAUTHBEARER", "neither Kerberos nor OAuth"),
        ({**TLS, "security.protocol": "SASL_SSL"}, "has sasl.mechanism GSSAPI, the default", "Write one of PLAIN"),
        ({**PASSWORD, "sasl.mechanisms": "PLAIN"}, "has sasl.mechanisms", "Write sasl.mechanism."),
        ({**PASSWORD, "sasl.password": ""}, "has sasl.mechanism SCRAM-SHA-512, but no sasl.password", "Add"),
    ],
)
def test_what_one_of_the_clients_would_not_use_is_refused_with_the_way_out(
    conf: dict[str, str], cause: str, way_out: str
) -> None:
    with pytest.raises(SpecError) as refused:
        java_conf(conf)
    first, _, rest = str(refused.value).partition("\n")
    assert first.startswith("LAKEHOUSE_KAFKA: the cluster main has ")
    assert cause in first
    assert way_out in rest
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("ssl.ca.location", "client.key", "client.key has no certificate"),
        ("ssl.certificate.location", "root.pem", "is not the key of the first certificate in ssl.certificate.location"),
        ("ssl.key.location", "client.pem", "has no key"),
        ("ssl.key.password", "another one", "client.key has no key"),
    ],
)
def test_a_file_that_is_not_what_its_setting_says_is_named(
    secure: SecureListeners, name: str, value: str, cause: str
) -> None:
    named = str(secure.folder / value) if name.endswith("location") else value
    with pytest.raises(SpecError, match="has files that cannot be used: ") as refused:
        java_conf({**secure.client_conf("mTLS"), name: named})
    assert cause in str(refused.value)
    assert KEY_PASSWORD not in str(refused.value)
