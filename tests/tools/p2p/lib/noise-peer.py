"""The other end of a handshake: noiseprotocol of PyPI, told line by line what to do; each answer is one line."""
import sys

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from noise.connection import NoiseConnection

noise = None
for line in sys.stdin:
    command, *words = line.split()
    given = [bytes.fromhex(word) for word in words]
    try:
        if command == "psk":
            secret, name = given
            answer = HKDF(SHA256(), 32, b"tunnel-p2p-v1", name).derive(secret)
        elif command in ("initiator", "responder"):
            noise = NoiseConnection.from_name(b"Noise_NNpsk0_25519_AESGCM_SHA256")
            noise.set_psks(psk=given[0])
            noise.set_prologue(given[1])
            noise.set_as_initiator() if command == "initiator" else noise.set_as_responder()
            noise.start_handshake()
            answer = b""
        elif command == "write":
            answer = noise.write_message(given[0] if given else b"")
        elif command == "read":
            answer = noise.read_message(given[0])
        elif command == "seal":
            answer = noise.encrypt(given[0] if given else b"")
        elif command == "open":
            answer = noise.decrypt(given[0])
        else:
            answer = noise.get_handshake_hash()
        print(bytes(answer).hex() or "-", flush=True)
    except Exception as error:
        print("failed", type(error).__name__, flush=True)
