// The names and ports of the account as the pages ask for them: their order, whose tunnel uses which, and how one is used. Pure but for the query.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient, Reservation, ReservationKind, TunnelLogEntry, UsageRegion } from '@tunnel/contract';
import { plural } from '../../ui/format.ts';

export const RESERVATIONS_KEY = ['reservations'] as const;

/** Tunnels come and go while one looks. */
const REFRESH_MS = 5000;

export const reservationsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: RESERVATIONS_KEY,
    queryFn: () => api.reservations(),
    refetchInterval: REFRESH_MS,
  });

/** Asked when the page opens, and when the list has changed. */
export const limitQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: [...RESERVATIONS_KEY, 'limit'],
    queryFn: async () => {
      const { plan, reserved_limit: limit = null } = await api.usage();
      return { plan, limit };
    },
    staleTime: 60_000,
  });

/** As `tunnel release` takes it, and as somebody types it to confirm: `shop`, `tcp/20042`. */
export const nameOf = ({ kind, label }: Pick<Reservation, 'kind' | 'label'>): string =>
  kind === 'subdomain' ? label : `${kind}/${label}`;

const KINDS: Readonly<Record<ReservationKind, string>> = { subdomain: 'Name', tcp: 'TCP port', udp: 'UDP port' };

/** "TCP port, fra". */
export const kindText = ({ kind, region_id: region }: Pick<Reservation, 'kind' | 'region_id'>): string =>
  region === null ? KINDS[kind] : `${KINDS[kind]}, ${region}`;

/** To show and to copy. What programs take of a port: they know their protocol. Empty: no edge of its region was heard yet. */
export const addressText = ({ kind, public_address: address }: Reservation): string =>
  kind === 'subdomain' ? address : address.replace(/^[a-z]+:\/\//, '');

/** null: nothing for a browser. */
export const hrefOf = ({ kind, public_address: address }: Reservation): string | null =>
  kind === 'subdomain' && /^https?:\/\/[^*]+$/.test(address) ? address : null;

export interface Reservations {
  readonly reserved: readonly Reservation[];
  /** Held and released ones: those in use first, then those that were used last. */
  readonly keptForNow: readonly Reservation[];
  /** Names that an edge chose and no tunnel uses now. An account that tries things collects dozens; the page folds them. */
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

/** How long a name stays its account's after its last tunnel has ended: "30 days". Empty: not at all, or the platform does not tell. */
export const keptAfterUse = ({ state, hold_seconds, grace_seconds }: Reservation): string =>
  spanText((state === 'released' ? grace_seconds : hold_seconds) ?? 0);

/** How long only its account can have a name again after its release: "7 days". Empty: not at all, or the platform does not tell. */
export const keptAfterRelease = ({ grace_seconds: seconds = 0 }: Reservation): string => spanText(seconds);

const HOUR_SECONDS = 3600;
const DAY_SECONDS = 24 * HOUR_SECONDS;

/** Days, or hours below two days. */
const spanText = (seconds: number): string => {
  if (seconds === 0) return '';
  if (seconds >= 2 * DAY_SECONDS && seconds % DAY_SECONDS === 0) return plural(seconds / DAY_SECONDS, 'day');
  return plural(Math.round(seconds / HOUR_SECONDS), 'hour');
};

/** What is over the limit after a change of plan stays. `limit` null: none. */
export const limitText = (reserved: number, plan: string, limit: number | null): string => {
  if (limit === null) return `${reserved} reserved. Your ${plan} plan has no limit.`;
  if (reserved > limit)
    return `${reserved} reserved; your ${plan} plan includes ${limit}. Existing reservations stay until you release them.`;
  const text = `${reserved} of ${limit} on your ${plan} plan.`;
  return reserved === limit ? `${text} Release a name or port to reserve another.` : text;
};

type Addressed = Pick<TunnelLogEntry, 'protocol' | 'label' | 'region_id'>;

/** What keeps the address of a tunnel for its account. A name keeps all below it, too; a tunnel of TLS is a tcp one that has a host for its label. */
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

/** The server for a command's `--server`. Needed for ports of one of several regions: `tunnel login` stores the server of one region. */
export const serverOf = (
  { region_id: region }: Pick<Reservation, 'region_id'>,
  regions: readonly UsageRegion[],
): UsageRegion | undefined => (regions.length > 1 ? regions.find(({ region_id }) => region_id === region) : undefined);

/** The words of the client that use it. */
export const clientWords = ({ kind, label }: Pick<Reservation, 'kind' | 'label'>): string =>
  kind === 'subdomain'
    ? `http 3000 --subdomain ${label.startsWith('*') ? `'${label}'` : label}`
    : `${kind} ${kind === 'tcp' ? 22 : 53} --remote-port ${label}`;
