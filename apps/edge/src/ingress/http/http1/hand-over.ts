// A client's connection leaves the visitors in a turn of its own: the read that brought its request may still be under way in this one. What throws
// on the way costs this connection, of which nobody else knows at that moment.
import type { AcceptedConnection } from '@tunnel/http-shell';
import type { Guarded } from '@tunnel/mux';

export const handOverNextTurn = (
  visitor: Guarded,
  accepted: AcceptedConnection | undefined,
  handOver: () => void,
): void => {
  setImmediate(() => {
    try {
      handOver();
    } catch (error) {
      accepted?.socket.destroy();
      visitor.abandon(error, 'visitor.leave');
    }
  });
};
