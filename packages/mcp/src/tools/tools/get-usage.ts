// Tool get_usage: returns the usage of the account, in total and by day.
import { CHART_DAYS, usageChartPoint, usageSummary } from '@tunnel/contract';
import * as z from 'zod';
import { wholeNumber } from '../arguments.ts';
import { defineTool } from '../tool.ts';

export const getUsage = defineTool({
  name: 'get_usage',
  title: 'Get usage',
  description:
    "Returns the account's usage: tunnels, requests and bytes in the last 30 days, in total and by day (UTC), with the plan and the tunnel limit. Use it for questions about usage and limits. Read-only and free. Prices, invoices and plan changes are not available.",
  input: z.strictObject({
    days: wholeNumber('Number of days, including today.', CHART_DAYS.min, CHART_DAYS.max).optional(),
  }),
  output: z.object({ summary: usageSummary, days: z.array(usageChartPoint) }),
  list: 'days',
  run: async (host, { days }, call) => {
    const usage = await host.getUsage(days, call);
    return { summary: usage.summary, days: [...usage.days] };
  },
});
