// All certificates of an edge as its operator sees them: those that come by themselves, the files of `[tls]`, and what the local authority has for
// this machine. Never a key.
import { X509Certificate } from 'node:crypto';
import type { EdgeCertificateView } from '@tunnel/contract';
import type { CertificatePair } from '@tunnel/http-shell';
import type { EdgeCertificates, KnownCertificate } from '../backend/certificates/edge-certificates.ts';

export interface CertificateSources {
  /** Those that come by themselves; null: none do. */
  readonly acmeCertificates: Pick<EdgeCertificates, 'list' | 'orders' | 'renew'> | null;
  /** Of `[tls]`; null: none are named. */
  readonly files: () => CertificatePair | null;
  /** Of the local authority, for the machine itself; null: there is none. */
  readonly local?: () => CertificatePair | null;
}

export interface ListedCertificate extends Omit<KnownCertificate, 'id'> {
  readonly source: EdgeCertificateView['source'];
}

export const listCertificates = async ({
  acmeCertificates,
  files,
  local,
}: CertificateSources): Promise<ListedCertificate[]> => {
  const named = files();
  const made = local?.() ?? null;
  const known = (await acmeCertificates?.list()) ?? [];
  return [
    ...(named === null ? [] : [ofPair(named, 'file')]),
    ...(made === null ? [] : [ofPair(made, 'local-ca')]),
    ...known.map(({ id: _id, ...one }): ListedCertificate => ({ ...one, source: 'acme' })),
  ];
};

const NAME = /^DNS:(.+)$/;

const ofPair = ({ cert }: CertificatePair, source: ListedCertificate['source']): ListedCertificate => {
  const read = new X509Certificate(cert);
  const names = (read.subjectAltName ?? '').split(', ').flatMap((part) => NAME.exec(part)?.[1] ?? []);
  return {
    names,
    source,
    isOperators: true,
    state: 'valid',
    issuer: /^(?:CN|O)=(.+)$/m.exec(read.issuer)?.[1] ?? read.issuer,
    notBefore: Date.parse(read.validFrom),
    notAfter: Date.parse(read.validTo),
    renewAt: null,
    lastError: null,
  };
};

export const showCertificate = (one: ListedCertificate): EdgeCertificateView => ({
  names: [...one.names],
  source: one.source,
  state: one.state,
  issuer: one.issuer,
  not_before: isoOf(one.notBefore),
  not_after: isoOf(one.notAfter),
  renew_at: isoOf(one.renewAt),
  last_error: one.lastError,
});

const isoOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());
