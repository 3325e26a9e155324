// Calls under /v1: checks the API key, returns the stored response for a repeated POST, and rejects everything else like the processor.
import { equalInConstantTime, type Secret, sha256Hex } from '@tunnel/runtime';
import type { Sandbox } from '../state/sandbox.ts';
import { ApiError, decodeForm, findRoute, type Match, type Route } from './api-route.ts';
import { endSubscriptionRoutes } from './billing-cycle.ts';
import { clockRoutes, customerRoutes, portalRoutes, setupIntentRoutes } from './customers.ts';
import { invoiceItemRoutes, invoiceRoutes } from './invoices.ts';
import { meterEventRoutes, meterRoutes } from './meters.ts';
import { priceRoutes } from './prices.ts';
import { subscriptionRoutes } from './subscriptions.ts';

const DAY_MS = 24 * 60 * 60_000;
const KEY_MAX_CHARACTERS = 255;

interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly body: string;
  readonly authorization: string | undefined;
  readonly idempotencyKey: string | undefined;
}

export interface Answer {
  readonly status: number;
  readonly body: object;
  readonly replayed: boolean;
}

export const answerCall = (sandbox: Sandbox, routes: readonly Route[], secretKey: Secret, call: Call): Answer => {
  checkKey(call, secretKey);
  const match = findRoute(routes, call.method, call.path);
  if (match === null) throw unknownPath(call);
  const key = call.method === 'POST' ? call.idempotencyKey : undefined;
  if (key === undefined) return { status: 200, body: perform(sandbox, match, call), replayed: false };
  return oncePerKey(sandbox, match, call, key);
};

const perform = (sandbox: Sandbox, { route, id }: Match, call: Call): object =>
  sandbox.store.transact(() => route.answer(sandbox, decodeForm(call.method === 'POST' ? call.body : call.query), id));

/** Stores the response together with the changes of the call. A rejected call changed nothing and may be repeated. */
const oncePerKey = (sandbox: Sandbox, { route, id }: Match, call: Call, key: string): Answer => {
  if (key.length > KEY_MAX_CHARACTERS) throw idempotencyError('The idempotency key is too long.');
  const request = sha256Hex(`${call.path}\n${call.body}`);
  const before = sandbox.store.get('answers', key);
  if (before !== undefined && sandbox.realNow() - before.answered_ms < DAY_MS) {
    if (before.request === request) return { status: before.status, body: before.body, replayed: true };
    throw idempotencyError(
      'Keys for idempotent requests can only be used with the same parameters they were first used with.',
    );
  }
  return sandbox.store.transact(() => {
    const body = route.answer(sandbox, decodeForm(call.body), id);
    sandbox.store.put('answers', { id: key, request, status: 200, body, answered_ms: sandbox.realNow() });
    return { status: 200, body, replayed: false };
  });
};

const idempotencyError = (message: string): ApiError => new ApiError(400, { type: 'idempotency_error', message });

const checkKey = ({ authorization = '' }: Call, secretKey: Secret): void => {
  const [, given = ''] = /^Bearer (\S+)$/i.exec(authorization) ?? [];
  if (given !== '' && equalInConstantTime(given, secretKey.reveal())) return;
  const message = given === '' ? 'You did not provide an API key.' : 'Invalid API Key provided.';
  throw new ApiError(401, { type: 'invalid_request_error', message });
};

const unknownPath = ({ method, path }: Call): ApiError =>
  new ApiError(404, {
    type: 'invalid_request_error',
    message: `Unrecognized request URL (${method}: ${path}). The simulator knows only the calls that the platform makes.`,
  });

// All supported calls of the simulated payment processor: only those that the platform makes.

export const apiRoutes = (baseUrl: () => string): readonly Route[] => [
  ...customerRoutes,
  ...clockRoutes,
  ...endSubscriptionRoutes,
  ...setupIntentRoutes,
  ...meterRoutes,
  ...meterEventRoutes,
  ...priceRoutes,
  ...subscriptionRoutes,
  ...invoiceItemRoutes,
  ...invoiceRoutes(baseUrl),
  ...portalRoutes(baseUrl),
];
