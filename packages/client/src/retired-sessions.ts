// Sessions that were replaced: they take nothing new and are closed when their last stream has ended.
import type { StreamReason } from '@tunnel/protocol';
import { CLIENT_LIMITS } from './limits.ts';
import type { Session } from './session.ts';

export class RetiredSessions {
  readonly #sessions = new Set<Session>();

  add(session: Session, reason: string): void {
    session.retire(reason);
    this.#sessions.add(session);
    // A client that flaps must not gather connections without end: the oldest gives way.
    const [oldest] = this.#sessions;
    if (this.#sessions.size > CLIENT_LIMITS.RETIRED_SESSIONS_MAX && oldest !== undefined) {
      this.#close(oldest, { code: 'limit', text: 'too many connections were lost with streams on them' });
    }
  }

  tick(now: number): void {
    for (const session of [...this.#sessions]) {
      session.tick(now);
      if (session.isSpent) this.#close(session, { code: 'shutting-down', text: 'the session is over' });
    }
  }

  closeAll(reason: StreamReason): void {
    for (const session of [...this.#sessions]) this.#close(session, reason);
  }

  #close(session: Session, reason: StreamReason): void {
    this.#sessions.delete(session);
    session.close(reason);
  }
}
