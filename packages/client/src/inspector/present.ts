// Records as the inspector's page gets them: without secrets, in snake_case.
import { type CapturedBody, readableBody } from '@tunnel/capture';
import { fieldValueOf, type HeaderField, redactFields } from '@tunnel/core';
import { CLIENT_LIMITS } from '../limits.ts';
import type { RequestRecord } from '../requests/request-record.ts';
import type { Tunnel } from '../tunnel.ts';
import { localAddress } from '../tunnel-spec.ts';

export const presentTunnel = ({ name, protocol, publicUrl, localHost, localPort, state }: Tunnel) => ({
  name,
  state,
  public_url: publicUrl,
  local: localAddress(protocol, localHost, localPort),
});

export const presentSummary = (record: RequestRecord) => ({
  id: record.id,
  tunnel: record.tunnel.name,
  at: new Date(record.at).toISOString(),
  method: record.method,
  path: record.shownPath,
  state: record.state,
  status: record.status,
  duration_ms: record.state === 'running' ? null : rounded(record.durationMs),
  request_bytes: record.requestBody.bytes,
  response_bytes: record.responseBody.bytes,
  replay_of: record.replayOf,
});

export const presentDetail = async (record: RequestRecord) => ({
  ...presentSummary(record),
  request: {
    version: record.requestHead?.version ?? null,
    headers: headersOf(record.requestHead?.headers),
    body: await bodyOf(record.requestHead?.headers, record.requestBody),
  },
  response:
    record.responseHead === null
      ? null
      : {
          version: record.responseHead.version,
          reason: record.responseHead.reason,
          headers: headersOf(record.responseHead.headers),
          body: await bodyOf(record.responseHead.headers, record.responseBody),
        },
  replay_problem: record.replayProblem,
});

const headersOf = (headers: readonly HeaderField[] = []): [string, string][] =>
  redactFields(headers.map(({ name, value }) => ({ name, value }))).map(({ name, value }) => [name, value]);

const BODY_BOUNDS = {
  shownBytes: CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES,
  unpackedBytes: 8 * CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES,
};

/** `text` null: nothing came, or it is not text. */
const bodyOf = async (headers: readonly HeaderField[] = [], body: CapturedBody) => ({
  bytes: body.bytes,
  text: await readableBody(
    {
      kept: body.kept,
      contentType: fieldValueOf(headers, 'content-type'),
      contentEncoding: fieldValueOf(headers, 'content-encoding'),
    },
    BODY_BOUNDS,
  ),
  is_whole: body.isWhole,
});

const rounded = (ms: number): number => Math.round(ms * 10) / 10;
