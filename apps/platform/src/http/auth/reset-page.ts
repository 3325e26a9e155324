// The page behind the link of a reset mail: asks for the new password, and sends it with the token of the link.
import { makePage } from './page.ts';

const BODY = `<form>
<label for="password">New password, at least 8 characters</label>
<input id="password" type="password" minlength="8" autocomplete="new-password" required autofocus>
<button>Set the password</button>
</form>
<p id="told" role="status"></p>
<noscript><p>This page needs JavaScript. Without it, send the token of the link and the new password to POST /auth/reset-password.</p></noscript>`;

// The token leaves the address bar at once: histories and screens keep what is shown there.
const SCRIPT = `const token = new URLSearchParams(location.search).get('token') ?? '';
history.replaceState(null, '', location.pathname);
const form = document.querySelector('form');
const told = document.getElementById('told');
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const button = form.querySelector('button');
  button.disabled = true;
  try {
    const answer = await fetch('../auth/reset-password', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, password: document.getElementById('password').value }),
    });
    const body = await answer.json();
    told.textContent = body.message ?? body.error;
    if (answer.ok) form.remove();
  } catch {
    told.textContent = 'The server cannot be reached. Please try again.';
  }
  button.disabled = false;
});`;

export const RESET_PAGE = makePage('Choose a new password', BODY, SCRIPT);
