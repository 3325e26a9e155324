// A certificate listener for tests: records the names and the certificate by id, as used in handshakes.
import type { CertificateListener } from './edge-certificates.ts';

export class RecordingListener implements CertificateListener {
  readonly shown = new Map<string, { readonly names: readonly string[]; readonly cert: string }>();
  /** Certificates that contain this text are refused. */
  refused: string | null = null;
  /** Ids of certificates reported with a private key already known to match. */
  readonly tried: string[] = [];

  onPair(id: string, names: readonly string[], { cert }: { readonly cert: Buffer }, isTried = false): string | null {
    if (isTried) this.tried.push(id);
    if (this.refused !== null && cert.toString().includes(this.refused))
      return 'the private key does not match the certificate';
    this.shown.set(id, { names, cert: cert.toString() });
    return null;
  }

  onGone(id: string): void {
    this.shown.delete(id);
  }

  get names(): string[] {
    return [...this.shown.values()].flatMap(({ names }) => [...names]).sort();
  }
}
