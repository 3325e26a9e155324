// The traceparent header of W3C Trace Context, and the sampling decision at the start of a trace.

/** The caller's part of a trace: the trace, and the caller's span, which becomes the parent of our span. */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hex digits, not all zero. */
  readonly parentId: string;
  readonly isSampled: boolean;
}

/**
 * Version, trace id, parent id and flags. Later versions may append fields after a hyphen; version ff is forbidden. Only lower-case hex
 * digits are valid.
 */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

const FIRST_VERSION = '00';
const SAMPLED = 0x01;
const ONLY_ZEROS = /^0+$/;

/**
 * Parses the value of a traceparent header. Returns null if the value is invalid; a new trace then starts, as the specification demands. A
 * header of a later version is read by the rules of version 00.
 */
export const parseTraceparent = (value: string): TraceContext | null => {
  const [, version, traceId = '', parentId = '', flags = '', more] = TRACEPARENT.exec(value) ?? [];
  if (version === undefined || ONLY_ZEROS.test(traceId) || ONLY_ZEROS.test(parentId)) return null;
  if (version === FIRST_VERSION && more !== undefined) return null;
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
};

/** Renders a traceparent header of version 00. Flags other than `sampled` are not passed on, because their meaning is unknown. */
export const traceparentOf = (traceId: string, spanId: string, isSampled: boolean): string =>
  `${FIRST_VERSION}-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;

export interface SamplingRules {
  /** Share of requests that are sampled, from 0 to 1. */
  readonly ratio: number;
  /** Whether the caller's `sampled` flag decides. */
  readonly trustsFlag: boolean;
}

/**
 * Decides at the head of a request whether its span is exported. `given` is the caller's context, or null without a valid header; `random`
 * is in [0, 1). Without trust, the trace id has no influence either, because callers choose the id.
 */
export const isSampled = ({ ratio, trustsFlag }: SamplingRules, given: TraceContext | null, random: number): boolean =>
  trustsFlag && given !== null ? given.isSampled : random < ratio;
