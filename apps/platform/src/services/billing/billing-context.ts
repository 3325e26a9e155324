// What the verbs of billing are given besides.
import type { Metering } from '../../billing/metering/metering.ts';
import type { Processor } from '../../billing/processor/processor.ts';
import type { ServiceContext } from '../service-context.ts';
import type { AccountLocks } from './account-locks.ts';

export interface BillingContext extends ServiceContext {
  readonly processor: Processor;
  readonly locks: AccountLocks;
  readonly metering: Pick<Metering, 'flush'>;
}
