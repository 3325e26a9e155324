// A captured request as the REST shows it: taken apart, without its secrets, with bodies for its owner only.
import { type CapturedBody, readableBody } from '@tunnel/capture';
import type { CapturedRequest } from '@tunnel/contract';
import { redactFields, redactUrl, type ShownField } from '@tunnel/core';
import { EDGE_LIMITS } from '../limits.ts';
import type { CaptureStore } from './capture-store.ts';
import type { CaptureRecorder } from './recorder.ts';
import { fieldValue, type HeadLines, headLines, pathOf, whyNotReplayable } from './stored-head.ts';

export interface CaptureView {
  readonly tunnelId: string;
  readonly withBodies: boolean;
  readonly idOf: CaptureStore['idOf'];
}

const BODY_BOUNDS = {
  shownBytes: EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES,
  unpackedBytes: EDGE_LIMITS.CAPTURE_UNPACKED_MAX_BYTES,
};

export const presentCapture = async (recorder: CaptureRecorder, view: CaptureView): Promise<CapturedRequest> => {
  const { facts, requestText, responseText, requestBody, responseBody, status, durationMs } = recorder;
  const request = headLines(requestText);
  const response = headLines(responseText);
  const [method = '', target = ''] = request.first.split(' ');
  return {
    id: view.idOf(facts.sequence),
    tunnel_id: view.tunnelId,
    at: new Date(facts.at).toISOString(),
    method,
    path: redactUrl(pathOf(target)),
    status: status === 0 ? null : status,
    duration_ms: durationMs === null ? null : Math.round(durationMs * 1000) / 1000,
    request_headers: toRecord(request.fields),
    response_headers: toRecord(response.fields),
    request_size: requestBody?.bytes ?? 0,
    response_size: responseBody?.bytes ?? 0,
    request_body: view.withBodies ? await bodyOf(request, requestBody) : null,
    response_body: view.withBodies ? await bodyOf(response, responseBody) : null,
    aborted: recorder.aborted,
    error: recorder.fault,
    replayable: whyNotReplayable(recorder, request) === null,
    ...(facts.replayOf === null ? {} : { replay_of: view.idOf(facts.replayOf) }),
  };
};

/** Names in lower case; the values of a repeated field in one, as RFC 9110, 5.3, allows. */
const toRecord = (fields: readonly ShownField[]): Record<string, string> => {
  const record = new Map<string, string>();
  for (const { name, value } of redactFields(fields)) {
    const lower = name.toLowerCase();
    const before = record.get(lower);
    record.set(lower, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(record);
};

const bodyOf = (head: HeadLines, body: CapturedBody | null): Promise<string | null> =>
  readableBody(
    {
      kept: body?.kept ?? '',
      contentType: fieldValue(head, 'content-type'),
      contentEncoding: fieldValue(head, 'content-encoding'),
    },
    BODY_BOUNDS,
  );
