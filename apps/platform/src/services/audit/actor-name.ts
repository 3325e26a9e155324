// How an actor is called in the audit.
import type { EdgeActor, OperatorActor, UserActor } from '../service-context.ts';

export const actorName = (actor: UserActor | OperatorActor | EdgeActor): string => {
  switch (actor.kind) {
    case 'user':
      return `user:${actor.userId}`;
    case 'operator':
      return `operator:${actor.name}`;
    case 'edge':
      return `edge:${actor.edgeId}`;
  }
};
