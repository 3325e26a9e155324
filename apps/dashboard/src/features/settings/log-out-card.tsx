// The way out, in all tabs of this browser.
import { useApp } from '../../app/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';

export const LogOutCard = () => {
  const { session } = useApp();
  return (
    <Card
      title="Log out"
      description="Ends this session in all tabs of this browser. Tunnels and keys are not affected."
      actions={
        // The page forgets in any case; a platform that is away forgets when the session runs out.
        <Button onClick={() => void session.leave().catch(() => {})}>Log out</Button>
      }
      padded={false}
    />
  );
};
