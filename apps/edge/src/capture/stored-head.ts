// Parses a stored head for presentation, and checks whether a request can be replayed. The head was validated on arrival, so nothing is
// rejected here.
import type { ShownField } from '@tunnel/http1';
import { EDGE_LIMITS } from '../limits.ts';
import type { CaptureRecorder } from './recorder.ts';

/** Maximum size of a decompressed body in bytes. Larger bodies are not shown. */
const CAPTURE_UNPACKED_MAX_BYTES = 1024 * 1024;

/** Size limits for captured bodies that are shown and edited. */
export const BODY_BOUNDS = {
  shownBytes: EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES,
  unpackedBytes: CAPTURE_UNPACKED_MAX_BYTES,
};

export interface HeadLines {
  readonly first: string;
  readonly fields: readonly ShownField[];
}

export const headLines = (text: string): HeadLines => {
  const [first = '', ...lines] = text.split('\r\n');
  const fields = lines.flatMap((line) => {
    const colon = line.indexOf(':');
    return colon === -1 ? [] : [{ name: line.slice(0, colon), value: line.slice(colon + 1).trim() }];
  });
  return { first, fields };
};

/** Returns the value of the first field with the name in a captured head, or null. */
export const fieldValue = ({ fields }: HeadLines, lower: string): string | null =>
  fields.find(({ name }) => name.toLowerCase() === lower)?.value ?? null;

/** Returns path and query of a request target, even of a target in absolute form. */
export const pathAndQuery = (requestTarget: string): string => {
  const path = requestTarget.replace(/^https?:\/\/[^/?]*/i, '');
  return path === '' || path.startsWith('?') ? `/${path}` : path;
};

/** Reports whether a rule rejected, redirected or answered the request at the edge. */
export const isAnsweredByRule = ({ policy }: Pick<CaptureRecorder, 'policy'>): boolean =>
  (policy?.answered_by ?? null) !== null;

/** Returns null if the request can be replayed unchanged, otherwise the reason why not. */
export const whyNotReplayable = (recorder: CaptureRecorder, head: HeadLines): string | null => {
  if (recorder.durationMs === null) return 'the request is still in progress';
  if (isAnsweredByRule(recorder)) return 'a policy rule answered the request before it reached the local service';
  if (recorder.status === 101) return 'the connection switched to another protocol';
  if (!hasBody(head)) return null;
  const { requestBody, hasWholeBody, info } = recorder;
  if (!hasWholeBody) return 'the body was not received completely';
  if (requestBody === null || requestBody.isWhole) return null;
  return info.keepsBodies
    ? `the body is larger than ${EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES} bytes`
    : 'bodies are not captured';
};

const hasBody = (head: HeadLines): boolean =>
  fieldValue(head, 'transfer-encoding') !== null || Number(fieldValue(head, 'content-length') ?? 0) > 0;
