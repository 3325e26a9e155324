// What the owner of the account should know first. Pure.
import type { PlatformPools, UsageSummary } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';
import { countText, plural } from '../../ui/format.ts';
import { sentence } from '../../ui/problem-text.ts';
import { type CostStatus, type CostUsage, viewCost } from '../billing/cost.ts';

export interface Warning {
  readonly key: string;
  readonly tone: Extract<Tone, 'warn' | 'bad'>;
  readonly text: string;
  readonly to: '/pools' | '/billing' | '/tunnels';
  readonly link: string;
}

export interface WarningInputs {
  readonly usage?: UsageSummary | undefined;
  readonly pools?: PlatformPools | undefined;
  readonly cost?: CostStatus | undefined;
  readonly used?: CostUsage | undefined;
}

export const warningsOf = ({ usage, pools, cost, used }: WarningInputs): Warning[] => [
  ...(pools === undefined ? [] : poolWarnings(pools)),
  ...(cost === undefined ? [] : costWarnings(cost, used)),
  ...(usage === undefined ? [] : limitWarnings(usage)),
];

const poolWarnings = ({ groups, warnings }: PlatformPools): Warning[] => {
  const down = groups.filter(({ healthy_count }) => healthy_count === 0);
  const [first] = down;
  const zero: Warning[] =
    first === undefined
      ? []
      : [
          {
            key: 'zero-healthy',
            tone: 'bad',
            text:
              down.length === 1
                ? `Pool ${first.name} has no healthy member: its visitors get 502.`
                : `${plural(down.length, 'pool')} have no healthy member: their visitors get 502.`,
            to: '/pools',
            link: 'See the pools',
          },
        ];
  const silent = warnings.map(
    (text): Warning => ({ key: text, tone: 'warn', text: sentence(text), to: '/pools', link: 'See the pools' }),
  );
  return [...zero, ...silent];
};

const costWarnings = (cost: CostStatus, used: CostUsage | undefined): Warning[] => {
  const found: Warning[] = [];
  const add = (key: string, tone: Warning['tone'], text: string): void =>
    void found.push({ key, tone, text, to: '/billing', link: 'Go to billing' });
  if (cost.subscription_status === 'past_due') {
    add('past-due', 'bad', 'A payment has failed. After 7 days live tunnels are closed and new ones refused.');
  }
  const { tone } = viewCost(cost, used);
  if (tone === 'bad') add('cap', 'bad', 'The spend cap is reached: new tunnels are refused, live ones are closed.');
  if (tone === 'warn') add('cap', 'warn', 'More than 80 % of the spend cap is used.');
  return found;
};

const limitWarnings = ({ active_tunnels: active, tunnel_limit: limit, plan }: UsageSummary): Warning[] =>
  limit === null || active < limit
    ? []
    : [
        {
          key: 'limit',
          tone: 'warn',
          text: `All ${countText(limit)} tunnels of the ${plan} plan are in use: one more is refused.`,
          to: '/tunnels',
          link: 'See the tunnels',
        },
      ];
