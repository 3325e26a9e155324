// A tunnel with rules, reached over HTTP/1.1 and HTTP/2, in front of a service that records its requests. Used by tests only.
import * as http from 'node:http';
import type { ClientHttp2Session } from 'node:http2';
import type { Rule } from '@tunnel/policy';
import { captureStore } from '../../capture/capture.fixture.ts';
import type { CaptureStore } from '../../capture/capture-store.ts';
import { HeldBodies } from '../../policy/held-bodies.ts';
import { policyOfRules, type TestGateOptions, testGate } from '../../policy/policy.fixture.ts';
import type { PolicyGate } from '../../policy/policy-gate.ts';
import type { PolicyHolder } from '../../routing/route-policy.ts';
import type { HttpStand, startHttpStand } from './http.fixture.ts';
import { ask, type HttpsStand, startHttpsStand, visitHttp2 } from './https.fixture.ts';
import { type RecordingService, startRecordingService } from './service.fixture.ts';

export const VERSIONS = ['HTTP/1.1', 'HTTP/2'] as const;
export type Version = (typeof VERSIONS)[number];

export interface Visit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Whether the body is sent without a length. */
  readonly isChunked?: boolean;
}

export interface VisitAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface PolicyStand {
  readonly http: HttpStand;
  readonly https: HttpsStand;
  readonly service: RecordingService;
  readonly gate: PolicyGate;
  readonly heldBodies: HeldBodies;
  readonly policy: PolicyHolder;
  readonly captures: CaptureStore;
  /** Sends a request on a new connection. */
  visit(version: Version, path: string, visit?: Visit): Promise<VisitAnswer>;
  stop(): void;
}

type Listener = Parameters<typeof startRecordingService>[1];
type StandOptions = NonNullable<Parameters<typeof startHttpStand>[1]>;

export const startPolicyStand = async (
  rules: readonly Rule[],
  { listener, operator, perform, ...options }: TestGateOptions & StandOptions & { readonly listener?: Listener } = {},
): Promise<PolicyStand> => {
  const service = await startRecordingService('served', listener);
  const { store: captures } = captureStore();
  const gate = testGate({ ...(operator && { operator }), ...(perform && { perform }) });
  const heldBodies = new HeldBodies();
  const policy: PolicyHolder = { current: policyOfRules(rules) };
  const https = await startHttpsStand(service.port, { policies: gate, heldBodies, policy, captures, ...options });
  const visit = async (version: Version, path: string, asked: Visit = {}): Promise<VisitAnswer> => {
    if (version === 'HTTP/1.1') return visitHttp1(https.http.port, path, asked);
    const session = visitHttp2(https);
    try {
      return await askHttp2(session, path, asked);
    } finally {
      session.close();
    }
  };
  const stop = (): void => {
    https.stop();
    service.close();
  };
  return { http: https.http, https, service, gate, heldBodies, policy, captures, visit, stop };
};

export const visitHttp1 = (port: number, path: string, { method = 'GET', headers, body, isChunked }: Visit = {}) =>
  new Promise<VisitAnswer>((resolve, reject) => {
    // Node.js adds a Content-Length to a body given in one piece, unless a header says otherwise.
    const length =
      isChunked === true
        ? { 'transfer-encoding': 'chunked' }
        : { ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }) };
    const request = http.request({
      host: '127.0.0.1',
      port,
      path,
      method,
      agent: false,
      headers: { host: 'web.localhost', ...length, ...headers },
    });
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });

export const askHttp2 = async (
  session: ClientHttp2Session,
  path: string,
  { method = 'GET', headers, body, isChunked }: Visit = {},
): Promise<VisitAnswer> => {
  const length = body === undefined || isChunked === true ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const {
    status,
    headers: fields,
    body: text,
  } = await ask(session, { ':method': method, ':path': path, ...length, ...headers }, body);
  return { status, headers: fields as http.IncomingHttpHeaders, body: text };
};
