// Who tries the platform out on the own machine has no mailbox to look into.

const LOCAL = new Set(['localhost', '127.0.0.1', '[::1]']);

export const LocalMailHint = () =>
  LOCAL.has(window.location.hostname) ? (
    <p className="border-line border-t pt-4 text-muted text-sm">
      On your own machine? Without a mail server, the link is printed in the terminal where the server runs.
    </p>
  ) : null;
