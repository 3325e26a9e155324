// What a changed configuration asks of a client that runs: which of its tunnels and peers stay as they are, which get another target or another
// policy in place, which are closed and opened anew, what comes and what goes. Values in, values out.

/** What one entry asks for, by the keys of config.yml, with its defaults filled in and its secrets as hashes: two that ask for the same are equal. */
export type EntryFields = Readonly<Record<string, unknown>>;

export interface WantedEntry {
  readonly name: string;
  /** A peer is what somebody else publishes; nothing of it is swapped in place. */
  readonly kind: 'tunnel' | 'peer';
  readonly fields: EntryFields;
}

export interface RunningEntry extends WantedEntry {
  /** false: opened while the client ran. It stays, unless the file names it. */
  readonly isOfFile: boolean;
}

/** Names, each in one list at most: what was opened while the client ran, and is not in the file, is in none. */
export interface ReloadPlan {
  readonly keep: readonly string[];
  readonly retarget: readonly string[];
  /** Asked for again under their ids: another policy or other services, and maybe another target too. Their connections stay. */
  readonly update: readonly string[];
  readonly reopen: readonly string[];
  readonly open: readonly string[];
  readonly close: readonly string[];
}

/** What became of a reload, as people and programs are told. The lists hold names; `restart_required` those of keys. */
export interface ReloadOutcome {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  readonly unchanged: number;
  readonly restart_required: readonly string[];
}

/** Names are unique in either list. */
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

/** Whether the two differ in the policy, the services and the target alone. */
export const isUpdate = (before: EntryFields, after: EntryFields): boolean =>
  isRetarget(withPolicyOf(before, after), after);

/** Whether visitors are taken elsewhere, or it is probed otherwise. */
export const hasOtherTarget = (before: EntryFields, after: EntryFields): boolean =>
  !isSame(withPolicyOf(before, after), after);

/** What the edge takes anew for a tunnel that it has: who may visit, and what requests may be sent to. */
const POLICY_KEYS: readonly string[] = ['policy', 'policy_revision', 'services'];

const withPolicyOf = (fields: EntryFields, other: EntryFields): EntryFields => ({
  ...fields,
  ...Object.fromEntries(POLICY_KEYS.map((key) => [key, other[key]])),
});

/** Where visitors are taken to, and how: the public sees nothing of it. */
const TARGET_KEYS: readonly string[] = [
  'local_host',
  'local_port',
  'local_socket',
  'local_protocol',
  'local_tls_verify',
  'files',
];

/** Whether the two differ in the target alone, so that the tunnel can stay what it is. */
export const isRetarget = (before: EntryFields, after: EntryFields): boolean => {
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => !isSame(before[key], after[key]),
  );
  return changed.every((key) => {
    // With `rewrite` the edge writes the local address into every request.
    if (TARGET_KEYS.includes(key)) return after['host_header'] !== 'rewrite';
    return key === 'health_check' && isSameToEdge(before[key], after[key]);
  });
};

/** Of a health check the edge goes by these alone; the client does the probing. */
const isSameToEdge = (before: unknown, after: unknown): boolean =>
  ['type', 'alert_webhook'].every((key) => isSame(fieldOf(before, key), fieldOf(after, key)));

const fieldOf = (value: unknown, key: string): unknown => (isTable(value) ? value[key] : undefined);

/** Keys above the tunnels that a client goes by from its start to its end. */
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

/** `started`: what the client started with, not what the last reload read: that was not applied. */
export const restartRequired = (started: EntryFields, now: EntryFields): string[] =>
  RESTART_KEYS.filter((key) => !isSame(started[key], now[key]));

export const outcomeOf = (plan: ReloadPlan, restart_required: readonly string[]): ReloadOutcome => ({
  added: plan.open,
  removed: plan.close,
  changed: [...plan.retarget, ...plan.update, ...plan.reopen],
  unchanged: plan.keep.length,
  restart_required,
});

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Of plain data; a key that is undefined is no key. */
const isSame = (one: unknown, other: unknown): boolean => {
  if (Object.is(one, other)) return true;
  if (!isTable(one) || !isTable(other) || Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].every((key) => isSame(one[key], other[key]));
};
