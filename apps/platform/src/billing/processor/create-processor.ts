// The processor that the configuration names: one code path, pointed at the real one or at a stand-in.
import type { Logger, Secret } from '@tunnel/runtime';
import type { Processor } from './processor.ts';

export interface ProcessorOptions {
  readonly secretKey: Secret;
  /** Asked for at each use: the simulator knows its own only after its start. */
  readonly webhookSecret: () => Secret;
  readonly apiUrl: () => string;
  readonly prices: { readonly minimumCents: number; readonly priceCentsPerGb: number };
  readonly logger: Logger;
}

export const createProcessor = (_options: ProcessorOptions): Processor => {
  throw new Error('not made yet');
};
