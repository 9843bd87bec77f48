// The sign-in screen: what to do without a session. The link's code never gets here; it was posted and cleared before.

import { post } from './api.js';
import { h, button, capital, fill, announce } from './dom.js';

export function show(place, { error, byLink, begin }) {
  const byPassword = error.body?.password_set ?? error.body?.error?.password_set;
  const trouble = h('p', { class: 'trouble', role: 'alert', id: 'signin-trouble', hidden: !byLink }, byLink ? `${capital(error.message)}.` : '');
  const password = h('input', { type: 'password', id: 'password', name: 'password', autocomplete: 'current-password', 'aria-describedby': 'signin-trouble', required: true });
  const enter = async (event) => {
    event.preventDefault();
    try {
      await begin(await post('/api/session', { password: password.value }));
    } catch (refused) {
      trouble.hidden = false;
      trouble.textContent = `${capital(refused.message)}.${refused.hint ? ` ${capital(refused.hint)}.` : ''}`;
      password.select();
    }
  };
  fill(place, h('div', { class: 'sign' },
    h('h2', {}, 'Sign in to Lapidary'),
    trouble,
    byPassword && h('form', { onsubmit: enter }, h('label', { for: 'password' }, 'Password'), h('div', { class: 'row-head' }, password, h('button', { type: 'submit', class: 'primary' }, 'Sign in'))),
    h('p', {}, byPassword ? 'Or open a link; this prints a fresh one:' : 'Open the link that stands in the terminal where Lapidary was started. Each link works once; this prints a fresh one:'),
    h('pre', { class: 'said' }, 'lapidary sign-in'),
    button('Try again', () => location.reload(), 'small')));
  announce('Sign in to go on.');
  (byPassword ? password : place.querySelector('button'))?.focus();
}
