// Validates ACME challenges as a certificate authority does: by an HTTP request, a TLS handshake or a DNS query.
import { createHash, type X509Certificate } from 'node:crypto';
import { get } from 'node:http';
import { connect } from 'node:tls';
import { loadX509 } from './test-authority.ts';

/** Address and ports to which a test resolves a name. */
export interface ValidationTarget {
  readonly host: string;
  readonly httpPort?: number;
  readonly tlsPort?: number;
}

export interface ValidationSource {
  /** Resolves a name. Returns null if the name does not exist. */
  addressOf(name: string): ValidationTarget | null;
  txt?(name: string): Promise<readonly string[]>;
}

export interface ValidationPlan {
  readonly type: string;
  readonly name: string;
  readonly token: string;
  readonly keyAuthorization: string;
}

const TIMEOUT_MS = 5000;
const BODY_MAX_BYTES = 4096;
const ACME_IDENTIFIER = '1.3.6.1.5.5.7.1.31';

/** Validates a challenge. Rejects with the reason if the validation fails. */
export const validateChallenge = async (plan: ValidationPlan, source: ValidationSource): Promise<void> => {
  if (plan.type === 'dns-01') return validateDns(plan, source);
  const target = source.addressOf(plan.name);
  if (target === null) throw new Error(`no address found for ${plan.name}`);
  return plan.type === 'http-01' ? validateHttp(plan, target) : validateTls(plan, target);
};

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

const validateDns = async ({ name, keyAuthorization }: ValidationPlan, source: ValidationSource): Promise<void> => {
  const found = (await source.txt?.(`_acme-challenge.${name}`)) ?? [];
  if (found.includes(digest(keyAuthorization).toString('base64url'))) return;
  throw new Error(`no TXT record of _acme-challenge.${name} has the value (${found.length} looked at)`);
};

const validateHttp = (plan: ValidationPlan, { host, httpPort }: ValidationTarget): Promise<void> =>
  new Promise((resolve, reject) => {
    const path = `/.well-known/acme-challenge/${plan.token}`;
    const headers = { host: plan.name };
    const request = get({ host, port: httpPort, path, headers, agent: false, timeout: TIMEOUT_MS }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        body = (body + text).slice(0, BODY_MAX_BYTES);
      });
      response.on('end', () => {
        if (response.statusCode !== 200)
          reject(new Error(`status ${response.statusCode} at http://${plan.name}${path}`));
        else if (body.trimEnd() !== plan.keyAuthorization)
          reject(new Error(`another text at http://${plan.name}${path}`));
        else resolve();
      });
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', reject);
  });

const validateTls = (plan: ValidationPlan, { host, tlsPort }: ValidationTarget): Promise<void> =>
  new Promise((resolve, reject) => {
    const options = { host, port: tlsPort, servername: plan.name, ALPNProtocols: ['acme-tls/1'] };
    const socket = connect({ ...options, rejectUnauthorized: false, timeout: TIMEOUT_MS }, () => {
      checkHandshake(plan, socket.alpnProtocol, socket.getPeerX509Certificate()).then(resolve, reject);
      socket.destroy();
    });
    socket.on('timeout', () => socket.destroy(new Error('timeout')));
    socket.on('error', reject);
  });

const checkHandshake = async (
  plan: ValidationPlan,
  alpn: unknown,
  shown: X509Certificate | undefined,
): Promise<void> => {
  if (alpn !== 'acme-tls/1') throw new Error('the server does not speak acme-tls/1');
  if (shown === undefined || shown.subjectAltName !== `DNS:${plan.name}`) {
    throw new Error(`the certificate is not for ${plan.name} alone`);
  }
  const { X509Certificate: Parsed } = await loadX509();
  const extension = new Parsed(shown.raw).getExtension(ACME_IDENTIFIER);
  const expected = Buffer.concat([Buffer.from([4, 32]), digest(plan.keyAuthorization)]);
  if (extension?.critical !== true || !expected.equals(Buffer.from(extension.value))) {
    throw new Error('the certificate does not carry the key authorization');
  }
};
