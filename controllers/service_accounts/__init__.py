"""What every namespace is given: the ServiceAccount ``default`` and the ConfigMap ``kube-root-ca.crt``; and the tokens of Secrets that are for one."""

from __future__ import annotations

from kubemini.controllers.service_accounts.controller import RootCertificates, ServiceAccountsController
from kubemini.controllers.service_accounts.tokens import TokensController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loops; tokens only where there is a server that takes them."""
    tokens = [TokensController(settings.root_certificate)] if settings.tokens else []
    return [ServiceAccountsController(), RootCertificates(settings.root_certificate), *tokens]
