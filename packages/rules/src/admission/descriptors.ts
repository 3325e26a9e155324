// How many connections a process may hold: its descriptors, less those kept back, in parts that nobody else can use up.

/** Listeners, files, the database, the platform, alerts, and refusals that are still being told: none of them is asked for at an accept. */
const KEPT_BACK_PART = 0.1;
const KEPT_BACK_MIN = 128;

const PARTS = { visitors: 0.7, control: 0.2, api: 0.1 } as const;

/** `visitors`: public ports; `control`: control connections and carriers; `api`: REST, metrics and the platform's API. */
export type ConnectionShare = keyof typeof PARTS;

export type ShareLimits = Readonly<Record<ConnectionShare, number>>;

export interface ConnectionTotal {
  readonly total: number;
  /** `connections_total` asks for more than the descriptors allow. */
  readonly isOverDescriptors: boolean;
}

/** `configured`: [limits] connections_total, 0 for what the descriptors allow. */
export const connectionTotal = (descriptors: number, configured: number): ConnectionTotal => {
  const allowed = Math.max(1, descriptors - Math.max(KEPT_BACK_MIN, Math.ceil(descriptors * KEPT_BACK_PART)));
  const total = configured === 0 ? allowed : Math.min(allowed, configured);
  return { total, isOverDescriptors: configured > allowed };
};

/** What nobody is promised: kept back beyond the least, and what `connections_total` leaves. Ports of tunnels come out of it first. */
export const spareDescriptors = (descriptors: number, total: number): number =>
  Math.max(0, descriptors - KEPT_BACK_MIN - total);

/** Of an edge. Each gets one at least: an edge that takes nobody in says why, and does not stand still. */
export const shareLimits = (total: number): ShareLimits => ({
  visitors: Math.max(1, Math.floor(total * PARTS.visitors)),
  control: Math.max(1, Math.floor(total * PARTS.control)),
  api: Math.max(1, Math.floor(total * PARTS.api)),
});

/** Of a process that has an API alone. */
export const apiAlone = (total: number): ShareLimits => ({ visitors: 0, control: 0, api: total });
