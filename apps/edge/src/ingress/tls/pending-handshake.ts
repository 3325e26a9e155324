// One connection to the https port: its first message is read, the door says where it goes, and it goes there. How it is read and given away
// depends on what it is: a bare handle (handle-handshake), or a socket of Node's (socket-handshake).

import type { SecureContext } from 'node:tls';
import { type AcceptedConnection, type ClientHello, HelloBytes } from '@tunnel/http-shell';
import type { ReportInternalError } from '@tunnel/mux';
import { RULE_LIMITS } from '@tunnel/rules/limits';
import type { CertificateStore, StoredCertificate } from './certificate-store.ts';
import type { ChallengeHandshakes } from './challenge-handshakes.ts';
import type { ContextWaiter } from './context-cache.ts';
import type { PendingEntry } from './pending-handshakes.ts';
import type { PassedRoute, Passthrough, TlsDoor, TlsExit } from './tls-door.ts';
import type { TlsKind } from './tls-totals.ts';

export interface HandshakeOwner {
  readonly door: Pick<TlsDoor, 'exitOf'>;
  readonly certificates: Pick<CertificateStore, 'contextOf' | 'wait' | 'leave'>;
  readonly passthrough: Pick<Passthrough, 'accept'> | null;
  /** null: no challenge is answered here. */
  readonly challenges: Pick<ChallengeHandshakes, 'prepare'> | null;
  readonly report: ReportInternalError;
  /** It is counted as what it became, and drop() is called; false: it had left already. */
  leaves(accepted: AcceptedConnection, as: TlsKind): boolean;
  /** false: its network begins too many handshakes, and the connection is reset. */
  handshakeBegins(accepted: AcceptedConnection): boolean;
}

/** Fatal, unrecognized_name (112): without a certificate nobody could say more. */
export const UNRECOGNIZED_NAME = Buffer.of(21, 3, 3, 0, 2, 2, 112);

export abstract class PendingHandshake implements PendingEntry, ContextWaiter {
  beganMs = 0;
  readonly accepted: AcceptedConnection;
  protected readonly bytes = new HelloBytes();
  readonly #owner: HandshakeOwner;
  /** What it said, while it waits. */
  #hello: ClientHello | null = null;
  #certificate: StoredCertificate | null = null;
  #isDropped = false;

  constructor(accepted: AcceptedConnection, owner: HandshakeOwner) {
    this.accepted = accepted;
    this.#owner = owner;
  }

  /** TLS begins, with all bytes so far. Returns whether it is read on. */
  protected abstract secure(context: SecureContext, hello: ClientHello, certificate: StoredCertificate): boolean;
  /** Likewise, with the certificate of its challenge, which is ready; then it is closed. */
  protected abstract challenge(): void;
  protected abstract passOn(to: Pick<Passthrough, 'accept'>, route: PassedRoute): boolean;
  /** One last word, and the end. */
  protected abstract say(alert: Buffer): void;
  protected abstract cut(): void;
  abstract destroy(): void;

  /** Bytes have come; false: no more of them, unless it is resumed. */
  protected take(bytes: Buffer, start: number, end: number): boolean {
    if (this.#hello !== null) return this.#takeMore(bytes, start, end);
    const reading = this.bytes.take(bytes, start, end);
    if (reading.kind === 'more') return true;
    if (reading.kind === 'hello') return this.#leaveBy(this.#owner.door.exitOf(reading.hello), reading.hello);
    // Strangers, and plain HTTP by mistake: closed without a word, and counted with the rest that fails.
    this.destroy();
    return false;
  }

  /** It waits for its certificate, and is read on so that its end is heard; an honest one has nothing to say now. */
  #takeMore(bytes: Buffer, start: number, end: number): boolean {
    this.bytes.append(bytes, start, end);
    if (this.bytes.all.length <= RULE_LIMITS.TLS_HELLO_MAX_BYTES) return true;
    this.destroy();
    return false;
  }

  #leaveBy(exit: TlsExit, hello: ClientHello): boolean {
    const { passthrough } = this.#owner;
    switch (exit.to) {
      case 'clients':
      case 'visitors':
        return this.#handshake(exit.certificate, hello);
      case 'passthrough':
        return passthrough === null ? this.#refuse() : this.#passOn(passthrough, exit.route);
      case 'challenge':
        return this.#answerChallenge(exit.name, hello);
      case 'nobody':
        this.#owner.leaves(this.accepted, 'no_certificate');
        this.say(UNRECOGNIZED_NAME);
        return false;
    }
  }

  /** It waits, and is read on so that its end is heard. */
  #answerChallenge(name: string | null, hello: ClientHello): boolean {
    const { challenges } = this.#owner;
    if (name === null || challenges === null) return this.#unchallenged();
    this.bytes.keep();
    this.#hello = hello;
    void challenges.prepare(name).then((isReady) => {
      if (this.#isDropped) return;
      try {
        if (isReady) this.challenge();
        else this.#unchallenged();
      } catch (error) {
        this.abandon(error, 'https.challenge');
      }
    });
    return true;
  }

  #unchallenged(): boolean {
    this.#owner.leaves(this.accepted, 'challenge');
    this.destroy();
    return false;
  }

  #passOn(passthrough: Pick<Passthrough, 'accept'>, route: PassedRoute): boolean {
    // Over a limit: here nobody could tell it so.
    if (this.accepted.refusal !== null) return this.#refuse();
    this.bytes.keep();
    return this.passOn(passthrough, route);
  }

  #refuse(): boolean {
    this.cut();
    return false;
  }

  #handshake(certificate: StoredCertificate, hello: ClientHello): boolean {
    const { certificates } = this.#owner;
    if (!this.#owner.handshakeBegins(this.accepted)) return false;
    const context = certificates.contextOf(certificate);
    if (context !== null) return this.secure(context, hello, certificate);
    this.bytes.keep();
    this.#hello = hello;
    this.#certificate = certificate;
    certificates.wait(certificate, this);
    return true;
  }

  onContext(context: SecureContext): void {
    const certificate = this.#certificate;
    const hello = this.#hello;
    this.#certificate = null;
    if (certificate === null || hello === null) return;
    try {
      this.secure(context, hello, certificate);
    } catch (error) {
      this.abandon(error, 'https.certificate');
    }
  }

  onBroken(error: unknown): void {
    this.#certificate = null;
    this.abandon(error, 'https.certificate');
  }

  drop(): void {
    this.#isDropped = true;
    this.bytes.drop();
    const certificate = this.#certificate;
    this.#certificate = null;
    if (certificate !== null) this.#owner.certificates.leave(certificate, this);
  }

  abandon(error: unknown, where: string): void {
    this.#owner.report(error, where);
    // Not the connection that was accepted alone: it may be given away by now, or have a visitor.
    this.accepted.close();
    this.destroy();
  }
}
