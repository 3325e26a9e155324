// List of all certificates of an edge for its operator: automatically issued certificates, the files of `[tls]`, and the certificate of
// the local authority. The list never contains private keys.
import { X509Certificate } from 'node:crypto';
import type { EdgeCertificateView } from '@tunnel/contract';
import type { CertificatePair } from '@tunnel/http-shell';
import type { EdgeCertificates, KnownCertificate } from '../backend/certificates/edge-certificates.ts';

export interface CertificateSources {
  /** Automatically issued certificates. Null if the edge uses no such certificates. */
  readonly acmeCertificates: Pick<EdgeCertificates, 'list' | 'orders' | 'renew'> | null;
  /** Returns the certificate of the `[tls]` files. Null if no files are configured. */
  readonly files: () => CertificatePair | null;
  /** Returns the `localhost` certificate of the local authority. Null without a local authority. */
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
