// Decides which values of a policy may appear in error messages. Only values of keys known to hold no secrets are shown: a password may
// be in the wrong place, such as the value of a key that expects a table.

const SHOWN: ReadonlySet<string> = new Set([
  'address',
  'algorithm',
  'allow',
  'allow_addresses',
  'anyone',
  'burst',
  'by',
  'credentials',
  'deny',
  'encoding',
  'max_age_secs',
  'max_body',
  'max_bytes',
  'method',
  'name',
  'origins',
  'path',
  'per_secs',
  'provider',
  'requests',
  'route',
  'session_secs',
  'status',
  'strip_prefix',
  'add_prefix',
  'trusted_origins',
]);

/** Keys of tables with names chosen by the policy's author. No value below these keys is shown, whatever its name. */
const CLOSED: ReadonlySet<string> = new Set(['users', 'header', 'headers', 'set', 'add', 'claims', 'secrets']);

/** Whether an error message may show the value at a path of a written policy. */
export const isShownPolicyKey = (path: readonly (string | number)[]): boolean => {
  const names = path.filter((key) => typeof key === 'string');
  return SHOWN.has(names.at(-1) ?? '') && !names.some((name) => CLOSED.has(name));
};
