// Replays a captured request to the local service, unchanged or edited, with the same dial as for visitors, and records the replay.

import { Fault } from '@tunnel/errors';
import { CHUNK_END, chunkLine, editRequest, lastChunk, type RequestEdit, type RequestHead } from '@tunnel/http1';
import { BROKEN, type ByteDuplex } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import { type DialLocal, dialLocal } from '../local/local-service.ts';
import type { LocalTarget } from '../local/local-target.ts';
import { HttpTap } from './http-tap.ts';
import type { RequestRecord } from './request-record.ts';
import type { RequestReporter } from './request-reporter.ts';

/** Timeout for the response to a replayed request. */
const INSPECTOR_REPLAY_TIMEOUT_MS = 30_000;

const DONE: StreamReason = { code: 'cancelled', text: 'the replay has ended' };

export interface ReplayOptions {
  readonly requests: RequestReporter;
  readonly clock: Clock;
  readonly dial?: DialLocal;
}

/** Limits of captured bodies for display and editing in the inspector. */
export const BODY_BOUNDS = {
  shownBytes: CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES,
  unpackedBytes: 8 * CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES,
};

/** Resolves with the new request's id once the request is sent. Rejects with a Fault. */
export const replay = async (
  record: RequestRecord,
  edit: RequestEdit,
  { requests, clock, dial = dialLocal }: ReplayOptions,
): Promise<string> => {
  const { requestHead: head, replayProblem } = record;
  if (head === null || replayProblem !== null) {
    throw new Fault('CLIENT_USAGE', {
      reason: `the request cannot be replayed: ${replayProblem ?? 'it was not captured'}`,
    });
  }
  const message = await messageOf(record, head, edit);
  const local = await dial(targetOf(record), clock);
  return send(local, record, message, { requests, clock });
};

/** Returns the local target to which the original request was sent. */
const targetOf = ({ tunnel, service }: RequestRecord): LocalTarget => {
  const target = service === undefined ? tunnel.target : tunnel.serviceTarget(service);
  if (target !== undefined) return target;
  throw new Fault('CLIENT_USAGE', { reason: `the tunnel no longer has a service '${service}'` });
};

const send = (
  local: ByteDuplex,
  record: RequestRecord,
  { bytes, isEdited }: Message,
  { requests, clock }: Pick<ReplayOptions, 'requests' | 'clock'>,
): string => {
  let id = '';
  const onEnd = (): void => {
    timer.cancel();
    // Deferred, so that the reset does not happen within the read of the last byte.
    queueMicrotask(() => local.reset(DONE));
  };
  const tap = new HttpTap((sent) => {
    const seen = requests.beginReplay(record, sent, { of: record.id, isEdited, onEnd });
    id = seen?.id ?? '';
    return seen;
  });
  // Ends a replay if the response does not end within the timeout.
  const timer = clock.setTimeout(() => tap.over(), INSPECTOR_REPLAY_TIMEOUT_MS);
  tap.request(bytes, 0, bytes.length);
  local.read({
    onData: (piece, start, end) => {
      tap.response(piece, start, end);
      return true;
    },
    onDrain: () => {},
    onEnd: () => tap.responseEnded(),
    onReset: () => tap.over(),
    // The tap handles its own errors; an error here ends only the replay.
    abandon: () => {
      tap.over();
      local.reset(BROKEN);
    },
  });
  local.write(bytes, 0, bytes.length, true);
  return id;
};

interface Message {
  readonly bytes: Buffer;
  readonly isEdited: boolean;
}

const messageOf = async ({ requestBody }: RequestRecord, head: RequestHead, edit: RequestEdit): Promise<Message> => {
  const edited = await editRequest({ head, body: requestBody.kept }, edit, BODY_BOUNDS);
  if (edited?.kind === 'problem') throw new Fault('CLIENT_USAGE', { reason: edited.reason });
  if (edited === null) return { bytes: bytesOf(head, Buffer.from(requestBody.kept, 'latin1')), isEdited: false };
  return { bytes: bytesOf(edited.head, edited.body), isEdited: true };
};

/** Returns the request's bytes with the original head. A chunked body is sent as one chunk. */
const bytesOf = (head: RequestHead, body: Buffer): Buffer => {
  const text = Buffer.from(head.text, 'latin1');
  if (head.framing.kind !== 'chunked') return Buffer.concat([text, body]);
  const before = body.length === 0 ? '' : chunkLine(body.length);
  const after = body.length === 0 ? lastChunk() : CHUNK_END + lastChunk();
  return Buffer.concat([text, Buffer.from(before, 'latin1'), body, Buffer.from(after, 'latin1')]);
};
