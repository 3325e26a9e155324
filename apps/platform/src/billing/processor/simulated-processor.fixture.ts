// The platform's payment processor, connected to a running simulator. For tests only.
import type { Clock } from '@tunnel/runtime';
import { SILENT, SimulatorHarness } from '@tunnel/simulator/fixture';
import type { ProcessorAccess } from '../billing.ts';
import { createProcessor } from './create-processor.ts';
import type { Processor } from './processor.ts';

export type SimulatedProcessor = SimulatorHarness & { readonly processor: Processor };

export const openSimulatedProcessor = async (clock?: Clock): Promise<SimulatedProcessor> => {
  const harness = await SimulatorHarness.open(clock);
  const prices = { minimumCents: 300, priceCentsPerGb: 10 };
  return Object.assign(harness, { processor: createProcessor({ ...accessOf(harness), prices, logger: SILENT }) });
};

/** Returns the access to a simulator. Reads secrets and URL on each call, because a restarted simulator has a new port. */
export const accessOf = (running: Pick<SimulatorHarness, 'simulator'>): ProcessorAccess => ({
  secretKey: running.simulator.secretKey,
  webhookSecret: () => running.simulator.webhookSecret,
  apiUrl: () => running.simulator.url,
});
