// Connection limits of a process: its file descriptors minus a reserve, divided into shares that cannot exhaust each other.

/**
 * Reserve for listeners, files, database, platform, alerts and rejected connections with an explanation, which are not checked at accept.
 */
const KEPT_BACK_PART = 0.1;
const KEPT_BACK_MIN = 128;

const PARTS = { visitors: 0.7, control: 0.2, api: 0.1 } as const;

/** `visitors`: public ports; `control`: control connections and carriers; `api`: REST, metrics and the platform's API. */
export type ConnectionShare = keyof typeof PARTS;

export type ShareLimits = Readonly<Record<ConnectionShare, number>>;

export interface ConnectionTotal {
  readonly total: number;
  /** True if `connections_total` exceeds the available file descriptors. */
  readonly isOverDescriptors: boolean;
}

/** Returns the connection limit of a process. `configured` is [limits] connections_total; 0 uses all available file descriptors. */
export const connectionTotal = (descriptors: number, configured: number): ConnectionTotal => {
  const allowed = Math.max(1, descriptors - Math.max(KEPT_BACK_MIN, Math.ceil(descriptors * KEPT_BACK_PART)));
  const total = configured === 0 ? allowed : Math.min(allowed, configured);
  return { total, isOverDescriptors: configured > allowed };
};

/**
 * Descriptors outside the shares: the reserve beyond its minimum, and those unused because of `connections_total`. Tunnel ports use them
 * first.
 */
export const spareDescriptors = (descriptors: number, total: number): number =>
  Math.max(0, descriptors - KEPT_BACK_MIN - total);

/** Limits of an edge. Every share has at least 1, so that an overloaded edge still explains why it rejects. */
export const shareLimits = (total: number): ShareLimits => ({
  visitors: Math.max(1, Math.floor(total * PARTS.visitors)),
  control: Math.max(1, Math.floor(total * PARTS.control)),
  api: Math.max(1, Math.floor(total * PARTS.api)),
});

/** Connection limits of a process that serves only an API. */
export const apiAlone = (total: number): ShareLimits => ({ visitors: 0, control: 0, api: total });
