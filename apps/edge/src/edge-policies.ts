// All policy parts of an edge in a single object: stored policies, the gate that applies rules to visitors, held request bodies, the
// driver for side effects, and figures for metrics.

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
  /** Number of operator rules, which run before the rules of each tunnel. */
  readonly operatorRules: number;
  readonly #driver: PolicyDriver;

  /** Throws a ConfigProblem if a file named in `[policy]` is invalid. */
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

  /** Names of the operator's login providers, for use in tunnel policies. */
  get loginProviders(): readonly string[] {
    return this.#driver.loginProviders;
  }

  /** Answers callback requests after a login at the operator's providers. Undefined if no provider is configured. */
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
