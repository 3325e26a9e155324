// Which values of a policy a refusal may repeat. Only those that are known to be no secret: a password can stand where it does not belong, as the
// value of a key that takes a table.

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

/** Below these nothing is shown, whatever it is called: names there are the owner's. */
const CLOSED: ReadonlySet<string> = new Set(['users', 'header', 'headers', 'set', 'add', 'claims', 'secrets']);

/** `path`: of a value in a policy as it was written. */
export const isShownPolicyKey = (path: readonly (string | number)[]): boolean => {
  const names = path.filter((key) => typeof key === 'string');
  return SHOWN.has(names.at(-1) ?? '') && !names.some((name) => CLOSED.has(name));
};
