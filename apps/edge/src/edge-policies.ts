// The policies of an edge in one object: what is kept of them, the rules in the way of visitors, what is done for them, and their figures.

import type { ServerConfig } from '@tunnel/config/server';
import { type CompiledPolicy, compilePolicy, type Policy } from '@tunnel/policy';
import type { Clock } from '@tunnel/runtime';
import type { PolicyFigures } from './admin/policy-metrics.ts';
import { PolicyStore } from './control/policy-store.ts';
import { HeldBodies } from './policy/held-bodies.ts';
import { NODE_DIGESTS } from './policy/node-digests.ts';
import type { PolicyDriver } from './policy/policy-driver.ts';
import { PolicyGate } from './policy/policy-gate.ts';
import { createPolicyServices, type PolicyServicesOptions } from './policy/policy-services.ts';
import type { HttpRouterOptions } from './routing/http-router.ts';

export class EdgePolicies {
  readonly store: PolicyStore;
  readonly gate: PolicyGate;
  readonly heldBodies = new HeldBodies();
  /** Rules of the operator that come before those of each tunnel. */
  readonly operatorRules: number;
  readonly #driver: PolicyDriver;

  /** Throws a ConfigProblem for a file of `[policy]` that cannot be used. */
  constructor(config: ServerConfig, options: PolicyServicesOptions & { readonly clock: Clock }) {
    const { driver, operatorPolicy } = createPolicyServices(config, options);
    const compile = (policy: Policy): CompiledPolicy => compilePolicy(policy, NODE_DIGESTS);
    this.#driver = driver;
    this.operatorRules = operatorPolicy?.rules.length ?? 0;
    this.store = new PolicyStore({ clock: options.clock, compile, onOver: (served) => driver.forget(served) });
    this.gate = new PolicyGate({
      operator: operatorPolicy === null ? null : compilePolicy(operatorPolicy, NODE_DIGESTS, 'operator'),
      driver,
      now: () => options.clock.now(),
    });
  }

  /** Names that the policy of a tunnel may use. */
  get loginProviders(): readonly string[] {
    return this.#driver.loginProviders;
  }

  /** Where logins at the operator's providers come back to. */
  get callbackRelay(): HttpRouterOptions['callbackRelay'] {
    const { callbackRelay } = this.#driver;
    return this.loginProviders.length === 0 ? undefined : (path) => callbackRelay.answer(path);
  }

  get figures(): PolicyFigures {
    const driver = this.#driver;
    return {
      answers: () => this.gate.answers.values(),
      passwordChecks: () => driver.metrics.passwordChecks,
      providerRequests: () => driver.metrics.providerRequests,
      limiterKeys: () => driver.metrics.limiterKeys,
      heldBytes: () => this.heldBodies.bytes,
    };
  }

  close(): void {
    this.#driver.close();
  }
}
