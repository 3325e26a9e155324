// The processor as the platform has it, pointed at a running simulator. Tests only.
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

/** After a restart it is another simulator, at another port. */
export const accessOf = (running: Pick<SimulatorHarness, 'simulator'>): ProcessorAccess => ({
  secretKey: running.simulator.secretKey,
  webhookSecret: () => running.simulator.webhookSecret,
  apiUrl: () => running.simulator.url,
});
