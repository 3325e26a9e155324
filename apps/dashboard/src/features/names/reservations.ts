// Query for the account's names and ports, and pure functions about them: sort order, addresses, and the name used by a tunnel.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient, Reservation, ReservationKind, TunnelLogEntry, UsageRegion } from '@tunnel/contract';
import { plural } from '../../ui/format.ts';

export const RESERVATIONS_KEY = ['reservations'] as const;

/** Refresh interval of the list of names. Tunnels can open and close while the page is open. */
const REFRESH_MS = 5000;

export const reservationsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: RESERVATIONS_KEY,
    queryFn: () => api.reservations(),
    refetchInterval: REFRESH_MS,
  });

/** Query for the plan's limit of reserved names. Fetched when the page opens, and after the list has changed. */
export const limitQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: [...RESERVATIONS_KEY, 'limit'],
    queryFn: async () => {
      const { plan, reserved_limit: limit = null } = await api.usage();
      return { plan, limit };
    },
    staleTime: 60_000,
  });

/** Returns the name in the form used by `tunnel release` and typed by users as a confirmation: `shop`, `tcp/20042`. */
export const nameOf = ({ kind, label }: Pick<Reservation, 'kind' | 'label'>): string =>
  kind === 'subdomain' ? label : `${kind}/${label}`;

const KINDS: Readonly<Record<ReservationKind, string>> = { subdomain: 'Name', tcp: 'TCP port', udp: 'UDP port' };

/** Returns the kind of a reservation with the region, as in "TCP port, fra". */
export const kindText = ({ kind, region_id: region }: Pick<Reservation, 'kind' | 'region_id'>): string =>
  region === null ? KINDS[kind] : `${KINDS[kind]}, ${region}`;

/**
 * Returns the address of a reservation to show and copy. Without a scheme for ports, because programs that connect to a port expect
 * `host:port`. Empty if no edge of the region has reported its address yet.
 */
export const addressText = ({ kind, public_address: address }: Reservation): string =>
  kind === 'subdomain' ? address : address.replace(/^[a-z]+:\/\//, '');

/** Returns the URL of a name for a browser. Null for ports, for wildcard names, and while the address is unknown. */
export const hrefOf = ({ kind, public_address: address }: Reservation): string | null =>
  kind === 'subdomain' && /^https?:\/\/[^*]+$/.test(address) ? address : null;

export interface Reservations {
  readonly reserved: readonly Reservation[];
  /** Held and released names: names in use first, then sorted by last use, newest first. */
  readonly keptForNow: readonly Reservation[];
  /**
   * Names chosen by an edge that no tunnel uses now. The page collapses the list, because an account in a trial phase collects dozens of
   * random names.
   */
  readonly unusedRandom: readonly Reservation[];
}

export const sortReservations = (list: readonly Reservation[]): Reservations => {
  const kept = list
    .filter(({ state }) => state !== 'reserved')
    .toSorted(
      (one, other) =>
        Number(other.active_tunnels > 0) - Number(one.active_tunnels > 0) ||
        (other.last_used_at ?? '').localeCompare(one.last_used_at ?? ''),
    );
  return {
    reserved: list.filter(({ state }) => state === 'reserved'),
    keptForNow: kept.filter((one) => !isUnusedRandom(one)),
    unusedRandom: kept.filter(isUnusedRandom),
  };
};

const isUnusedRandom = ({ assigned, active_tunnels: active }: Reservation): boolean =>
  assigned === true && active === 0;

/**
 * Returns how long a name stays with its account after the last tunnel has closed, as in "30 days". Empty if the name is not held, or if
 * the platform does not report the time.
 */
export const keptAfterUse = ({ state, hold_seconds, grace_seconds }: Reservation): string =>
  spanText((state === 'released' ? grace_seconds : hold_seconds) ?? 0);

/**
 * Returns how long only the previous owner can take a name back after its release, as in "7 days". Empty if there is no such time, or if
 * the platform does not report the time.
 */
export const keptAfterRelease = ({ grace_seconds: seconds = 0 }: Reservation): string => spanText(seconds);

const HOUR_SECONDS = 3600;
const DAY_SECONDS = 24 * HOUR_SECONDS;

/** Formats a time span in days, or in hours if shorter than two days. */
const spanText = (seconds: number): string => {
  if (seconds === 0) return '';
  if (seconds >= 2 * DAY_SECONDS && seconds % DAY_SECONDS === 0) return plural(seconds / DAY_SECONDS, 'day');
  return plural(Math.round(seconds / HOUR_SECONDS), 'hour');
};

/**
 * Returns the text about used and included reservations. Reservations above the limit stay after a plan change. A `limit` of null means
 * no limit.
 */
export const limitText = (reserved: number, plan: string, limit: number | null): string => {
  if (limit === null) return `${reserved} reserved. Your ${plan} plan has no limit.`;
  if (reserved > limit)
    return `${reserved} reserved; your ${plan} plan includes ${limit}. Existing reservations stay until you release them.`;
  const text = `${reserved} of ${limit} on your ${plan} plan.`;
  return reserved === limit ? `${text} Release a name or port to reserve another.` : text;
};

type Addressed = Pick<TunnelLogEntry, 'protocol' | 'label' | 'region_id'>;

/**
 * Returns the reservation that covers a tunnel's address. A reserved name also covers every name below it. TLS tunnels are TCP tunnels
 * with a host name as label.
 */
export const reservationOf = (entry: Addressed, list: readonly Reservation[]): Reservation | undefined => {
  const { protocol, label, region_id: region } = entry;
  if (protocol === 'p2p') return undefined;
  if (protocol === 'http') return nameAbove(label, list);
  if (/^\d+$/.test(label)) {
    return list.find((one) => one.kind === protocol && one.label === label && one.region_id === region);
  }
  return list.find((one) => one.kind === 'subdomain' && isAtOrBelow(label, hostOf(one.public_address)));
};

const nameAbove = (label: string, list: readonly Reservation[]): Reservation | undefined => {
  const names = list.filter(({ kind }) => kind === 'subdomain');
  return names.find((one) => one.label === label) ?? names.find((one) => isAtOrBelow(label, one.label));
};

const isAtOrBelow = (host: string, name: string): boolean => host === name || host.endsWith(`.${name}`);

const hostOf = (address: string): string => address.replace(/^[a-z]+:\/\//, '').replace(/[:/].*$/, '');

/**
 * Returns the server for a command's `--server` flag if the platform has several regions, because `tunnel login` stores the server of one
 * region only. Undefined with a single region.
 */
export const serverOf = (
  { region_id: region }: Pick<Reservation, 'region_id'>,
  regions: readonly UsageRegion[],
): UsageRegion | undefined => (regions.length > 1 ? regions.find(({ region_id }) => region_id === region) : undefined);

/** Returns the client's command arguments that open a tunnel with the name or port. */
export const clientWords = ({ kind, label }: Pick<Reservation, 'kind' | 'label'>): string =>
  kind === 'subdomain'
    ? `http 3000 --subdomain ${label.startsWith('*') ? `'${label}'` : label}`
    : `${kind} ${kind === 'tcp' ? 22 : 53} --remote-port ${label}`;
