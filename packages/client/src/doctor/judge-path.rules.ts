// Judges the path to the edge: proxy, name resolution, connection, certificate, edge and API key.
import { type Finding, skipped } from './check.rules.ts';

/** Certificates are renewed a month before expiry, so two weeks before expiry a renewal must have failed. */
const DOCTOR_CERTIFICATE_WARN_DAYS = 14;

/** Message and hint of an error from the catalogue, without secrets. */
export interface Problem {
  readonly message: string;
  readonly hint: string;
}

const failed = ({ message, hint }: Problem): Finding => ({ status: 'fail', detail: message, hint });

const good = (detail: string): Finding => ({ status: 'ok', detail, hint: '' });

export type ProxyFacts =
  | { readonly state: 'none'; readonly why: string }
  /** The connection through the proxy works. `shown` is the proxy's URL without credentials. */
  | { readonly state: 'connected'; readonly shown: string; readonly ms: number }
  | { readonly state: 'failed'; readonly problem: Problem };

export const judgeProxy = (facts: ProxyFacts): Finding => {
  if (facts.state === 'none') return skipped(facts.why);
  if (facts.state === 'failed') return failed(facts.problem);
  return good(`${facts.shown}, ${Math.round(facts.ms)} ms`);
};

export type DnsFacts =
  | { readonly state: 'address' }
  | { readonly state: 'by-proxy' }
  | { readonly state: 'resolved'; readonly host: string; readonly addresses: readonly string[]; readonly ms: number }
  | { readonly state: 'failed'; readonly host: string; readonly reason: string };

const ADDRESSES_SHOWN = 3;

export const judgeDns = (facts: DnsFacts): Finding => {
  switch (facts.state) {
    case 'address':
      return skipped('the server is an IP address');
    case 'by-proxy':
      return skipped('the proxy resolves the name');
    case 'failed':
      return {
        status: 'fail',
        detail: `${facts.host}: ${facts.reason}`,
        hint: `Check the spelling of the server name, and the DNS settings of this computer (getent hosts ${facts.host}).`,
      };
    case 'resolved': {
      const more = facts.addresses.length - ADDRESSES_SHOWN;
      const shown = facts.addresses.slice(0, ADDRESSES_SHOWN).join(', ');
      return good(`${facts.host} is ${shown}${more > 0 ? ` and ${more} more` : ''}, ${Math.round(facts.ms)} ms`);
    }
  }
};

export type TcpFacts =
  | { readonly state: 'connected'; readonly server: string; readonly ms: number }
  | { readonly state: 'failed'; readonly server: string; readonly reason: string };

export const judgeTcp = (facts: TcpFacts): Finding =>
  facts.state === 'connected'
    ? good(`${facts.server} in ${Math.round(facts.ms)} ms`)
    : {
        status: 'fail',
        detail: `${facts.server}: ${facts.reason}`,
        hint: 'Check that the edge is running and that the port is its control port or https port. If your network allows only port 443, use --server host:443.',
      };

export type TlsFacts =
  | { readonly state: 'clear'; readonly toThisMachine: boolean }
  | { readonly state: 'failed'; readonly problem: Problem }
  | {
      readonly state: 'secured';
      readonly version: string;
      /** ALPN protocol negotiated in TLS. Empty if none was negotiated. */
      readonly alpn: string;
      readonly issuer: string;
      readonly daysLeft: number;
      readonly verified: boolean;
      /**
       * Issuer of the certificate shown by the edge itself, as reported inside the connection. Null if the edge does not report an issuer.
       */
      readonly edgeIssuer: string | null;
    };

export const judgeTls = (facts: TlsFacts): Finding => {
  if (facts.state === 'failed') return failed(facts.problem);
  if (facts.state === 'clear') {
    if (facts.toThisMachine) return skipped('not encrypted (the server is on this computer)');
    return {
      status: 'warn',
      detail: 'nothing is encrypted, not even the API key',
      hint: 'Use --tls, unless you trust the network in between.',
    };
  }
  return judgeCertificate(facts);
};

const judgeCertificate = (facts: Extract<TlsFacts, { state: 'secured' }>): Finding => {
  const { version, alpn, issuer, daysLeft, verified, edgeIssuer } = facts;
  const detail = `${version}, issued by ${issuer}, ${daysLeft} days left${alpn === '' ? '' : `, ALPN ${alpn}`}`;
  if (!verified) {
    return {
      status: 'warn',
      detail: `${detail}; not verified`,
      hint: 'Leave out --insecure, and trust the CA of the server with --ca-file.',
    };
  }
  if (edgeIssuer !== null && edgeIssuer !== issuer) {
    return {
      status: 'warn',
      detail: `${detail}; the edge's certificate is issued by ${edgeIssuer}: TLS is intercepted`,
      hint: 'Your network decrypts this connection. Tunnels work; ask the network administrator, or use another network.',
    };
  }
  if (daysLeft < DOCTOR_CERTIFICATE_WARN_DAYS) {
    return { status: 'warn', detail, hint: "Renew the edge's certificate before it expires." };
  }
  return good(detail);
};

export type EdgeFacts =
  | { readonly state: 'answered'; readonly server: string }
  | { readonly state: 'failed'; readonly problem: Problem };

export const judgeEdge = (facts: EdgeFacts): Finding =>
  facts.state === 'failed' ? failed(facts.problem) : good(`${facts.server} is an edge`);

export type KeyFacts =
  | { readonly state: 'accepted'; readonly region: string; readonly capabilities: readonly string[] }
  | { readonly state: 'refused'; readonly problem: Problem };

export const judgeKey = (facts: KeyFacts): Finding => {
  if (facts.state === 'refused') return failed(facts.problem);
  const region = facts.region === '' ? '' : `, region ${facts.region}`;
  const capabilities = facts.capabilities.length === 0 ? '' : `, offers ${facts.capabilities.join(', ')}`;
  return good(`accepted${region}${capabilities}`);
};

export interface CarrierFacts {
  readonly wanted: number;
  readonly opened: number;
  /** Why the last carrier could not be opened. Empty if all carriers opened. */
  readonly problem: string;
}

export const judgeCarriers = ({ wanted, opened, problem }: CarrierFacts): Finding => {
  if (opened >= wanted) return good(`${opened} of ${wanted} open`);
  return {
    status: opened === 0 ? 'fail' : 'warn',
    detail: `${opened} of ${wanted} open: ${problem}`,
    hint: 'The control connection works, but further connections to the same port fail. Check for connection limits per address on the network path.',
  };
};
