/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of our elements in libvirt's domain metadata. */
#pragma once

#define WSS_PROFILE_NAMESPACE "urn:virt-wss:profile:1"
#define WSS_PROFILE_PREFIX "wss"

#define WSS_POLICY_NAMESPACE "urn:virt-wss:policy:1"
#define WSS_POLICY_PREFIX "wss-policy"
