// What should be known first, above everything else. What cannot be asked for is not warned of: its own panel tells.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useApi } from '../../app/app-context.tsx';
import { Notice } from '../../ui/notice.tsx';
import { billingQuery, billingUsageQuery } from '../billing/queries.ts';
import { poolStatesQuery, usageQuery } from './queries.ts';
import { warningsOf } from './warnings.ts';

export const Warnings = () => {
  const api = useApi();
  const usage = useQuery(usageQuery(api)).data;
  const pools = useQuery(poolStatesQuery(api)).data;
  const cost = useQuery(billingQuery(api)).data;
  const used = useQuery(billingUsageQuery(api)).data;
  const warnings = warningsOf({ usage, pools, cost, used });
  if (warnings.length === 0) return null;
  return (
    <div className="space-y-3">
      {warnings.map(({ key, tone, text, to, link }) => (
        <Notice key={key} tone={tone} live>
          {text}{' '}
          <Link to={to} className="whitespace-nowrap rounded-sm underline underline-offset-2">
            {link}
          </Link>
        </Notice>
      ))}
    </div>
  );
};
