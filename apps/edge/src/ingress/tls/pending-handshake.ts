// A connection to the https port before its handshake: reads the ClientHello, finds the destination and hands the connection over. Reading
// and handing over differ between a bare handle (handle-handshake) and a Node socket (socket-handshake).

import type { SecureContext } from 'node:tls';
import { type AcceptedConnection, type ClientHello, HelloBytes } from '@tunnel/http-shell';
import type { ReportInternalError } from '@tunnel/mux';
import { RULE_LIMITS } from '@tunnel/rules/limits';
import type { CertificateStore, StoredCertificate } from './certificate-store.ts';
import type { ChallengeHandshakes } from './challenge-handshakes.ts';
import type { ContextWaiter } from './context-cache.ts';
import type { PendingEntry } from './pending-handshakes.ts';
import type { PassedRoute, Passthrough, SniRouter, TlsDestination } from './sni-router.ts';
import type { TlsKind } from './tls-totals.ts';

export interface HandshakeOwner {
  readonly sniRouter: Pick<SniRouter, 'destinationOf'>;
  readonly certificates: Pick<CertificateStore, 'contextOf' | 'wait' | 'leave'>;
  readonly passthrough: Pick<Passthrough, 'accept'> | null;
  /** Prepares ACME tls-alpn-01 challenges. Null if the edge does not answer challenges. */
  readonly challenges: Pick<ChallengeHandshakes, 'prepare'> | null;
  readonly report: ReportInternalError;
  /** Counts the connection by its outcome and calls drop(). Returns false if the connection was removed already. */
  leaves(accepted: AcceptedConnection, as: TlsKind): boolean;
  /** Returns false if the visitor's network starts too many handshakes. The connection is then reset. */
  handshakeBegins(accepted: AcceptedConnection): boolean;
}

/** TLS alert: fatal, unrecognized_name (112). Without a certificate no other response is possible. */
export const UNRECOGNIZED_NAME = Buffer.of(21, 3, 3, 0, 2, 2, 112);

export abstract class PendingHandshake implements PendingEntry, ContextWaiter {
  beganMs = 0;
  readonly accepted: AcceptedConnection;
  protected readonly bytes = new HelloBytes();
  readonly #owner: HandshakeOwner;
  /** ClientHello of the connection, while it waits for a certificate. */
  #hello: ClientHello | null = null;
  #certificate: StoredCertificate | null = null;
  #isDropped = false;

  constructor(accepted: AcceptedConnection, owner: HandshakeOwner) {
    this.accepted = accepted;
    this.#owner = owner;
  }

  /** Starts TLS with all bytes received so far. Returns whether to continue reading. */
  protected abstract secure(context: SecureContext, hello: ClientHello, certificate: StoredCertificate): boolean;
  /** Starts TLS with the prepared challenge certificate. The connection closes after the handshake. */
  protected abstract challenge(): void;
  protected abstract passOn(to: Pick<Passthrough, 'accept'>, route: PassedRoute): boolean;
  /** Sends a TLS alert to the visitor and closes the connection. */
  protected abstract say(alert: Buffer): void;
  protected abstract cut(): void;
  abstract destroy(): void;

  /** Processes received bytes of the ClientHello. Returns false if reading must stop until resumed. */
  protected take(bytes: Buffer, start: number, end: number): boolean {
    if (this.#hello !== null) return this.#takeMore(bytes, start, end);
    const reading = this.bytes.take(bytes, start, end);
    if (reading.kind === 'more') return true;
    if (reading.kind === 'hello') return this.#goTo(this.#owner.sniRouter.destinationOf(reading.hello), reading.hello);
    // The bytes are not TLS, for example plain HTTP by mistake. The connection is closed without a log entry and counted as failed.
    this.destroy();
    return false;
  }

  /**
   * Keeps bytes that arrive while waiting for the certificate. Reading continues to notice a disconnect; a normal client sends nothing now.
   */
  #takeMore(bytes: Buffer, start: number, end: number): boolean {
    this.bytes.append(bytes, start, end);
    if (this.bytes.all.length <= RULE_LIMITS.TLS_HELLO_MAX_BYTES) return true;
    this.destroy();
    return false;
  }

  #goTo(destination: TlsDestination, hello: ClientHello): boolean {
    const { passthrough } = this.#owner;
    switch (destination.to) {
      case 'clients':
      case 'visitors':
        return this.#handshake(destination.certificate, hello);
      case 'passthrough':
        return passthrough === null ? this.#refuse() : this.#passOn(passthrough, destination.route);
      case 'challenge':
        return this.#answerChallenge(destination.name, hello);
      case 'nobody':
        this.#owner.leaves(this.accepted, 'no_certificate');
        this.say(UNRECOGNIZED_NAME);
        return false;
    }
  }

  /** Waits for the ACME challenge's certificate. Reading continues to notice a disconnect. */
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
    // The connection is over a limit. An encrypted connection cannot get an error response, so it is reset.
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
    // Closes both, because the accepted connection may have been handed over or may belong to a visitor already.
    this.accepted.close();
    this.destroy();
  }
}
