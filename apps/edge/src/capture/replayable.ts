// Whether a captured request can be sent again exactly as it was.
import { EDGE_LIMITS } from '../limits.ts';
import { fieldValue, type HeadLines } from './head-lines.ts';
import type { CaptureRecorder } from './recorder.ts';

/** null: it can. Else why not, for people. */
export const whyNotReplayable = (recorder: CaptureRecorder, head: HeadLines): string | null => {
  if (recorder.durationMs === null) return 'it is still under way';
  if (recorder.status === 101) return 'it switched to another protocol';
  if (!hasBody(head)) return null;
  const { requestBody, hasWholeBody, facts } = recorder;
  if (!hasWholeBody) return 'its body did not come whole';
  if (requestBody === null || requestBody.bytes === requestBody.kept.length) return null;
  return facts.keepsBodies
    ? `its body is over ${EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES} bytes`
    : 'bodies are not kept here';
};

export const hasBody = (head: HeadLines): boolean =>
  fieldValue(head, 'transfer-encoding') !== null || Number(fieldValue(head, 'content-length') ?? 0) > 0;
