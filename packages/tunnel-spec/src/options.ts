// The table of all tunnel options, one row per option. config.yml, the agent's JSON, the library's names, reloads, flags, completion and
// the docs are derived from these rows.
import { GROUP_OPTIONS } from './rows/group-options.ts';
import { LOCAL_OPTIONS } from './rows/local-options.ts';
import { P2P_OPTIONS } from './rows/p2p-options.ts';
import { POLICY_OPTIONS } from './rows/policy-options.ts';
import { PUBLIC_OPTIONS } from './rows/public-options.ts';

/** All options in the order used by error messages and the docs. */
export const OPTIONS = {
  ...LOCAL_OPTIONS,
  ...PUBLIC_OPTIONS,
  ...GROUP_OPTIONS,
  ...POLICY_OPTIONS,
  ...P2P_OPTIONS,
};
