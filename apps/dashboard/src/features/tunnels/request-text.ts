// The texts and tones of a captured request. Pure.
import type { CapturedRequest } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';

export const statusTone = (status: number | null): Tone => {
  if (status === null) return 'neutral';
  if (status >= 500) return 'bad';
  if (status >= 400) return 'warn';
  return status >= 300 ? 'accent' : 'good';
};

export const statusText = ({ status, duration_ms, aborted }: CapturedRequest): string => {
  if (status !== null) return String(status);
  if (duration_ms === null && !aborted) return 'Under way';
  return 'No answer';
};

/** What went beside the plan; null: nothing. */
export const troubleText = ({ error, aborted }: CapturedRequest): string | null => {
  if (error !== null) return `The edge answered, or cut it off: ${error}.`;
  return aborted ? 'The visitor left before the end, or the answer was cut off.' : null;
};

/** Why it cannot be sent again; null: it can. */
export const noReplayText = ({ replayable }: CapturedRequest, isLive: boolean): string | null => {
  if (!isLive) return 'The tunnel has ended: there is no service to send it to.';
  return replayable ? null : 'It was not kept whole, so it cannot be sent again.';
};

export interface BodyPreview {
  /** null: there is nothing to show, for the reason in `note`. */
  readonly text: string | null;
  readonly note: string | null;
}

const KEPT_BYTES = 16 * 1024;

/** JSON is laid out for reading. A body that was cut is shown as it came. */
export const previewBody = (body: string | null, size: number, contentType: string | undefined): BodyPreview => {
  if (size === 0 && (body === null || body === '')) return { text: null, note: 'No body.' };
  if (body === null) return { text: null, note: 'Not text, or bodies are not kept: there is no preview.' };
  const note = size > KEPT_BYTES ? 'The first 16 KiB.' : null;
  const isJson = /\bjson\b/i.test(contentType ?? '') || /^\s*[{[]/.test(body);
  return { text: isJson ? laidOut(body) : body, note };
};

const laidOut = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};
