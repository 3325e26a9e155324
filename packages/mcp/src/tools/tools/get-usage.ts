// get_usage: what the account has used, in all and by day.
import { CHART_DAYS, usageChartPoint, usageSummary } from '@tunnel/contract';
import * as z from 'zod';
import { wholeNumber } from '../arguments.ts';
import { defineTool } from '../tool.ts';

export const getUsage = defineTool({
  name: 'get_usage',
  title: 'Get usage',
  description:
    'Shows what this account has used: tunnels, requests and bytes of the last 30 days, its plan and limit, and the same by day (UTC). Reads only, costs nothing. It shows no prices and no invoices, and can change neither plan nor payment.',
  input: z.strictObject({
    days: wholeNumber('So many days, today included.', CHART_DAYS.min, CHART_DAYS.max).optional(),
  }),
  output: z.object({ summary: usageSummary, days: z.array(usageChartPoint) }),
  list: 'days',
  run: async (host, { days }, call) => {
    const usage = await host.getUsage(days, call);
    return { summary: usage.summary, days: [...usage.days] };
  },
});
