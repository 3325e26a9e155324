// Warnings for the account's owner, such as a reached limit. Pure functions.
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
                ? `Group ${first.name} has no healthy members. Visitors get a 502 error.`
                : `${plural(down.length, 'group')} have no healthy members. Visitors get a 502 error.`,
            to: '/pools',
            link: 'See groups',
          },
        ];
  const silent = warnings.map(
    (text): Warning => ({ key: text, tone: 'warn', text: sentence(text), to: '/pools', link: 'See groups' }),
  );
  return [...zero, ...silent];
};

const costWarnings = (cost: CostStatus, used: CostUsage | undefined): Warning[] => {
  const found: Warning[] = [];
  const add = (key: string, tone: Warning['tone'], text: string): void =>
    void found.push({ key, tone, text, to: '/billing', link: 'Go to Billing' });
  if (cost.subscription_status === 'past_due') {
    add('past-due', 'bad', 'A payment failed. Pay within 7 days, or your tunnels stop.');
  }
  const { tone } = viewCost(cost, used);
  if (tone === 'bad')
    add('cap', 'bad', 'You reached your spend limit. Your tunnels stop until you raise the limit or the month ends.');
  if (tone === 'warn') add('cap', 'warn', 'You have used more than 80 % of your spend limit.');
  return found;
};

const limitWarnings = ({ active_tunnels: active, tunnel_limit: limit, plan }: UsageSummary): Warning[] =>
  limit === null || active < limit
    ? []
    : [
        {
          key: 'limit',
          tone: 'warn',
          text: `All ${countText(limit)} tunnels of your ${plan} plan are in use. Stop a tunnel to start another.`,
          to: '/tunnels',
          link: 'See tunnels',
        },
      ];
