// The calls under /v1: the key is asked for, a POST that was answered before is answered the same, and everything else is refused
// as the processor would.
import { equalInConstantTime, type Secret, sha256Hex } from '@tunnel/runtime';
import { decodeForm } from './form-params.ts';
import { findRoute, type Match, type Route } from './route.ts';
import { SimError } from './sim-error.ts';
import type { SimWorld } from './sim-world.ts';

const DAY_MS = 24 * 60 * 60_000;
const KEY_MAX_CHARACTERS = 255;

export interface Call {
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

export const answerCall = (world: SimWorld, routes: readonly Route[], secretKey: Secret, call: Call): Answer => {
  checkKey(call, secretKey);
  const match = findRoute(routes, call.method, call.path);
  if (match === null) throw unknownPath(call);
  const key = call.method === 'POST' ? call.idempotencyKey : undefined;
  if (key === undefined) return { status: 200, body: perform(world, match, call), replayed: false };
  return oncePerKey(world, match, call, key);
};

const perform = (world: SimWorld, { route, id }: Match, call: Call): object =>
  world.state.transact(() => route.answer(world, decodeForm(call.method === 'GET' ? call.query : call.body), id));

/** The answer is kept together with what the call changed. One that was refused changed nothing and may be tried again. */
const oncePerKey = (world: SimWorld, { route, id }: Match, call: Call, key: string): Answer => {
  if (key.length > KEY_MAX_CHARACTERS) throw idempotencyError('The idempotency key is too long.');
  const request = sha256Hex(`${call.path}\n${call.body}`);
  const before = world.state.get('answers', key);
  if (before !== undefined && world.realNow() - before.answered_ms < DAY_MS) {
    if (before.request === request) return { status: before.status, body: before.body, replayed: true };
    throw idempotencyError(
      'Keys for idempotent requests can only be used with the same parameters they were first used with.',
    );
  }
  return world.state.transact(() => {
    const body = route.answer(world, decodeForm(call.body), id);
    world.state.put('answers', { id: key, request, status: 200, body, answered_ms: world.realNow() });
    return { status: 200, body, replayed: false };
  });
};

const idempotencyError = (message: string): SimError => new SimError(400, { type: 'idempotency_error', message });

const checkKey = ({ authorization = '' }: Call, secretKey: Secret): void => {
  const [, given = ''] = /^Bearer (\S+)$/i.exec(authorization) ?? [];
  if (given !== '' && equalInConstantTime(given, secretKey.reveal())) return;
  const message = given === '' ? 'You did not provide an API key.' : 'Invalid API Key provided.';
  throw new SimError(401, { type: 'invalid_request_error', message });
};

const unknownPath = ({ method, path }: Call): SimError =>
  new SimError(404, {
    type: 'invalid_request_error',
    message: `Unrecognized request URL (${method}: ${path}). The simulator knows only the calls that the platform makes.`,
  });
