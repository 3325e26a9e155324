// What a changed configuration asks of a running client: which tunnels and peers stay, which get another target or another policy in place, and
// which are closed or opened. The rows of the options say what a changed value does.

import type { ReloadClass } from './option.ts';
import { hasOption, OPTION_KEYS, optionOf, SPEC_KEYS, type SpecKey, type TunnelSpec } from './tunnel-spec.ts';

/** An entry by the keys of config.yml, with defaults and with hashes of secrets. Entries that ask for the same are equal. */
export type EntryFields = Readonly<Record<string, unknown>>;

/** Turns the value of an option into plain data that can be compared; undefined for a value that asks for nothing. */
type PlainValue = (value: never) => unknown;

const same = (value: unknown): unknown => value;

/** The entry fields of a spec: options of its protocol with their defaults, without the options that change nothing. */
export const entryFields = (spec: TunnelSpec, plain: Partial<Record<SpecKey, PlainValue>>): EntryFields => {
  const keys = SPEC_KEYS.filter((key) => hasOption(spec.proto, key) && optionOf(key).reload !== 'same');
  // A host says nothing without a port.
  const asked = keys.filter((key) => key !== 'local_host' || spec.local_port !== undefined);
  const fields = asked.flatMap((key): [string, unknown][] => {
    const value = filledValue(key, spec[key]);
    const compared = value === undefined ? undefined : (plain[key] ?? same)(value as never);
    return compared === undefined ? [] : [[key, compared]];
  });
  return { proto: spec.proto, ...Object.fromEntries(fields) };
};

/** A checked value with the defaults of its nested table, or the default of an absent option. */
const filledValue = (key: SpecKey, value: unknown): unknown => {
  const parsed = optionOf(key).schema.safeParse(value);
  return parsed.success ? parsed.data : value;
};

export interface WantedEntry {
  readonly name: string;
  /** `peer`: a connection to a tunnel of another client. A changed peer is always opened again. */
  readonly kind: 'tunnel' | 'peer';
  readonly fields: EntryFields;
}

export interface RunningEntry extends WantedEntry {
  /** false: the tunnel was opened while the client ran. The tunnel stays unless the file has its name. */
  readonly isOfFile: boolean;
}

/** Names, each in at most one list. Tunnels that were opened while the client ran and are not in the file are in no list. */
export interface ReloadPlan {
  readonly keep: readonly string[];
  readonly retarget: readonly string[];
  /** Tunnels with another policy or other services, and maybe another target. The edge takes the change; connections stay. */
  readonly update: readonly string[];
  readonly reopen: readonly string[];
  readonly open: readonly string[];
  readonly close: readonly string[];
}

/** The outcome of a reload for people and programs: names of tunnels, and in `restart_required` names of keys. */
export interface ReloadOutcome {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  readonly unchanged: number;
  readonly restart_required: readonly string[];
}

/** Names are unique in each list. */
export const planReload = (running: readonly RunningEntry[], wanted: readonly WantedEntry[]): ReloadPlan => {
  const plan: Record<Exclude<keyof ReloadPlan, 'close'>, string[]> = {
    keep: [],
    retarget: [],
    update: [],
    reopen: [],
    open: [],
  };
  const before = new Map(running.map((entry) => [entry.name, entry]));
  for (const entry of wanted) plan[stepFor(before.get(entry.name), entry)].push(entry.name);
  const names = new Set(wanted.map(({ name }) => name));
  const close = running.filter(({ name, isOfFile }) => isOfFile && !names.has(name)).map(({ name }) => name);
  return { ...plan, close };
};

const stepFor = (before: RunningEntry | undefined, after: WantedEntry): Exclude<keyof ReloadPlan, 'close'> => {
  if (before === undefined) return 'open';
  if (before.kind !== after.kind) return 'reopen';
  if (isSame(before.fields, after.fields)) return 'keep';
  if (after.kind !== 'tunnel') return 'reopen';
  if (isRetarget(before.fields, after.fields)) return 'retarget';
  return isUpdate(before.fields, after.fields) ? 'update' : 'reopen';
};

/** Whether the entries differ only in policy, services and target. */
export const isUpdate = (before: EntryFields, after: EntryFields): boolean =>
  isRetarget(withPolicyOf(before, after), after);

/** Whether the target or the health check changes. */
export const hasOtherTarget = (before: EntryFields, after: EntryFields): boolean =>
  !isSame(withPolicyOf(before, after), after);

const keysOf = (reload: ReloadClass): readonly string[] => OPTION_KEYS.filter((key) => optionOf(key).reload === reload);

/** Options that the edge takes for a running tunnel. */
const UPDATED: readonly string[] = keysOf('update');

const withPolicyOf = (fields: EntryFields, other: EntryFields): EntryFields => ({
  ...fields,
  ...Object.fromEntries(UPDATED.map((key) => [key, other[key]])),
});

/** Options that only the client needs. */
const RETARGETED: readonly string[] = keysOf('retarget');

/** Whether the entries differ only in the target, so that the tunnel can stay open. */
export const isRetarget = (before: EntryFields, after: EntryFields): boolean => {
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => !isSame(before[key], after[key]),
  );
  return changed.every((key) => {
    // With `rewrite` the edge writes the local address into every request.
    if (RETARGETED.includes(key)) return after['host_header'] !== 'rewrite';
    return key === 'health_check' && isSameToEdge(before[key], after[key]);
  });
};

/** The edge needs only these keys of a health check, because the client probes. */
const isSameToEdge = (before: unknown, after: unknown): boolean =>
  ['type', 'alert_webhook'].every((key) => isSame(fieldOf(before, key), fieldOf(after, key)));

const fieldOf = (value: unknown, key: string): unknown => (isTable(value) ? value[key] : undefined);

/** Keys outside `tunnels` that a client reads only at its start. */
const RESTART_KEYS: readonly string[] = [
  'server',
  'tls',
  'ca_file',
  'insecure',
  'proxy',
  'proxy_auth_file',
  'auth_token',
  'auth_token_file',
  'log_file',
];

/** `started`: the keys at the start of the client. The last reload did not apply such keys. */
export const restartRequired = (started: EntryFields, now: EntryFields): string[] =>
  RESTART_KEYS.filter((key) => !isSame(started[key], now[key]));

export const reloadOutcome = (plan: ReloadPlan, restart_required: readonly string[]): ReloadOutcome => ({
  added: plan.open,
  removed: plan.close,
  changed: [...plan.retarget, ...plan.update, ...plan.reopen],
  unchanged: plan.keep.length,
  restart_required,
});

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Compares plain data. A key with the value undefined counts as absent. */
const isSame = (one: unknown, other: unknown): boolean => {
  if (Object.is(one, other)) return true;
  if (!isTable(one) || !isTable(other) || Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].every((key) => isSame(one[key], other[key]));
};
