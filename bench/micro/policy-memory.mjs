// Policies: what one holds of an edge's memory, beside its text. As a registration brings it: read, judged, kept, and asked once.
import { canonicalJson, compilePolicy, policyHash } from '@tunnel/policy';
import { systemClock } from '@tunnel/runtime';
import { judgePolicy } from '../../apps/edge/src/control/brought-policy.rules.ts';
import { PolicyStore } from '../../apps/edge/src/control/policy-store.ts';
import { NODE_DIGESTS } from '../../apps/edge/src/policy/node-digests.ts';
import { heldBytes } from './measure.mjs';
import { TEN_RULES } from './policy-rules.mjs';

const COUNT = 1000;
/** As the scenario `http-policy-10` of npm run bench writes them. */
const FEW_NETWORKS = ['203.0.113.0/24', '198.51.100.0/24', '2001:db8::/32'];

const tenRules = (index) =>
  TEN_RULES.map((rule) => {
    if (rule.match?.address !== undefined) return { ...rule, match: { address: FEW_NETWORKS } };
    // Each is another policy, as equal ones are kept once.
    return 'redirect' in rule ? { ...rule, redirect: { to: `/new-${index}`, status: 301 } } : rule;
  });

const textOf = (index) => JSON.stringify({ login: null, rules: tenRules(index) });

const broughtBy = (text) => {
  const policy = judgePolicy({ policy: JSON.parse(text) }, { protocol: 'http', loginProviders: [] });
  if (policy instanceof Error) throw policy;
  return {
    policy,
    services: [],
    stamp: { revision: 0, hash: policyHash(policy, [], NODE_DIGESTS.sha256Hex), isReturning: false },
  };
};

const held = (textAt) => {
  const store = new PolicyStore({
    clock: systemClock,
    compile: (policy) => compilePolicy(policy, NODE_DIGESTS),
    bytesMax: 1e9,
  });
  const holders = [];
  // What is made once, whoever comes first.
  holders.push(store.hold(broughtBy(textAt(COUNT))));
  globalThis.gc();
  const before = heldBytes();
  for (let index = 0; index < COUNT; index++) holders.push(store.hold(broughtBy(textAt(index))));
  globalThis.gc();
  const bytes = (heldBytes() - before) / COUNT;
  return { bytes, kept: store.size, holders: holders.length };
};

export const policyMemory = [
  {
    name: 'policy: ten rules, each route with its own',
    hold: () => {
      const { bytes } = held(textOf);
      return { bytes, textBytes: canonicalJson(JSON.parse(textOf(COUNT))).length };
    },
  },
  {
    name: 'policy: ten rules, all routes with the same',
    hold: () => ({ bytes: held(() => textOf(0)).bytes, textBytes: 0 }),
  },
];
